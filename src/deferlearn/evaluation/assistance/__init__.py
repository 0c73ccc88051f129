"""`assistance_report` answers whether assistance pays on these data, and at which budget."""
