"""The kopf operator in gangsched, which watches our CustomResourceDefinition. No other package imports kopf."""
