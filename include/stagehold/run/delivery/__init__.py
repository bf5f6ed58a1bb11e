"""How does a wave get from staged to consumable, if its gate lets it?"""
