"""The layout of a Parquet file of traces.

Rules of this file

1. A file has one Config, in its metadata. Rows are events; a row group holds whole traces, so it can be judged alone. The
   column `trace` numbers the traces of a file from 0.
2. There are two layouts. Wide: one column for each field that an event of the file has. Distinct: the metadata lists the
   distinct events (traces.files.distinct), and the one column `row` has the row of each event in that list.
3. No column is nullable. UNKNOWN (-2**62) stands for an absent field: decoding nulls costs nine times as much as decoding
   numbers. Columns are dictionary encoded int64, uncompressed: a page is then decoded straight into the
   array the judge reads.
4. `epochs`, the only list, is JSON text, empty where it is absent: a file has few distinct ones, and each is parsed once per
   row group.
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
