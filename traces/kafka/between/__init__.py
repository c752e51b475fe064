"""What the nodes say of each other: requests and responses matched, their steps merged, gaps that show between two logs."""
