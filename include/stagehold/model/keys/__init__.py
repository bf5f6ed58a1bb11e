"""By which keys are contents, intervals and rows known?"""
