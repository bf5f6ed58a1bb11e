"""How are savepoints made, looked at and thrown away through the web API?"""
