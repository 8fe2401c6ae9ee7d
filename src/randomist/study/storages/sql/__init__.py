"""Studies in SQLite and PostgreSQL, by SQLAlchemy: the tables, how they change, short transactions, the statements."""
