"""The filters: each a pure function `(Suggestion, Context) -> Suggestion | Drop`."""
