"""The part of gangsched that is a kopf operator: it watches our CustomResourceDefinition. No other imports kopf."""
