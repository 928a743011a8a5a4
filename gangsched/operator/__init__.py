"""The part of gangsched that is a kopf operator: it watches PodGroups. No other package imports kopf."""
