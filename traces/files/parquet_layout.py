"""What a Parquet file of traces looks like, for its writer and its reader.

Rules of this file

1. A file has one Config, in its metadata. Rows are events; a row group holds whole traces, so it can be judged alone. The
   column `trace` numbers the traces of a file from 0.
2. There are two layouts. Wide: one column per field that an event of the file tells. Distinct: the metadata lists the
   different events (traces.files.distinct), and the one column `row` says which of them each event is.
3. No column is nullable. UNKNOWN (-2**62) stands for what an event does not tell: decoding nulls costs nine times as much
   as decoding the number. Columns are dictionary encoded int64, uncompressed: a page is then decoded straight into the
   array the judge reads.
4. `epochs`, the one list, is JSON text, empty where it is not told: a file has few different ones, and they are parsed
   once per row group.
"""

import pyarrow as pa

ROW_GROUP = 262_144
"""Events per row group: a worker holds about 60 MB of columns at a time, whatever the file's size."""

METADATA = b"tidegauge"
"""Key of the metadata, whose value is JSON: v, config, and in the distinct layout events."""

TRACE = "trace"
ROW = "row"
EPOCHS = "epochs"
EPOCHS_TYPE = pa.dictionary(pa.int32(), pa.string())
