"""Why somebody does not see a record: what `riverlog explain` finds out, by the APIs that any client has."""
