"""The schema of Vega-Lite, as Altair brings it: checking against it is much quicker than building Altair's objects."""

from functools import cache

import altair
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for


@cache
def vega_lite_schema() -> Validator:
    """Its `validate` raises a ValidationError for what is no chart of Vega-Lite."""
    schema = altair.load_schema()
    return validator_for(schema)(schema)
