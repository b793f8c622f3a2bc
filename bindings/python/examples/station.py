"""Shows a published station, if there is one: hairspring serve examples/settable.toml --publish shutter."""

from hairspring.station import Refused, Station

try:
    station = Station("shutter")
except FileNotFoundError:
    print("no station is published as shutter")
else:
    state = station.state()
    print(f"validity: {state['validity']}")
    for unit in state["units"]:
        print(f"unit {unit['name']}: {unit['events']} events, {unit['missed']} missed")
    try:
        station.put("shutter", "width", 20_000, cycle=(state["units"][0]["cycle"] or 0) + 1)
    except (Refused, OSError) as error:
        print(f"not set: {error}")
