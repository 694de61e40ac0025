"""The plan in Postgres: order, feeding, claiming and recording. No broker and no HTTP in here."""
