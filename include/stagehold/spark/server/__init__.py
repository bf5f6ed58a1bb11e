"""Where does the Spark server of a home run, and who uses it?"""
