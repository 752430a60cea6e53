"""Prompt planning: the anchored window now, tiers and budgets around it. Pure; imports only `text`."""
