/** An ordinary organisation of a generated world: its place, its provider, its ranges and the sites in them. */
import type { PlannedHost } from "./lay-out.ts";
import { type Place, places } from "./places.ts";
import type { Department } from "./plan-registry.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { WorldDraft } from "./world-draft.ts";

/** Share of organisations whose range is registered with a provider of another country than it is used in. */
const misfiledShare = 0.15;

export function drawOrganisation(draft: WorldDraft): void {
  const { random } = draft;
  const home = draft.drawPlace();
  const misfiled = random.chance(misfiledShare);
  const provider = draft.providerFor(misfiled ? draft.drawPlace() : home);
  const holderWith = draft.holdersOf(draft.names.organisation(), provider);
  const spread = random.chance(0.12);
  for (let left = drawDepartmentCount(random); left > 0 && draft.sitesLeft > 0; ) {
    const together = spread ? 1 : random.integer(1, left);
    const place = spread ? otherPlace(draft, home) : home;
    const registeredWith = spread && !misfiled ? draft.providerFor(place) : provider;
    const network = misfiled ? draft.providerFor(place).network : registeredWith.network;
    draft.plan.assign({
      provider: registeredWith,
      city: place.name,
      holder: holderWith(registeredWith),
      departments: Array.from({ length: together }, () => drawDepartment(draft, place, network)),
    });
    left -= together;
  }
}

function drawDepartment(draft: WorldDraft, place: Place, network: number): Department {
  const { random } = draft;
  const count = Math.min(draft.sitesLeft, random.chance(0.82) ? 1 : random.integer(2, 5));
  const spot = draft.hostAt(place, network);
  let offset = random.integer(1, 5);
  const hosts = Array.from({ length: count }, (_, position): PlannedHost => {
    if (position > 0 && !random.chance(0.2)) offset += random.integer(1, 3);
    return draft.addSite(spot, { offset });
  });
  return { hosts };
}

/** Mostly elsewhere in the same country, sometimes anywhere. */
function otherPlace(draft: WorldDraft, home: Place): Place {
  const sameCountry = places.filter((place) => place.country === home.country);
  return draft.random.chance(0.6) ? draft.random.pick(sameCountry) : draft.drawPlace();
}

/** Ranges of one organisation: most have one, few have many. */
function drawDepartmentCount(random: SeededRandom): number {
  const draw = random.next();
  if (draw < 0.6) return 1;
  if (draw < 0.8) return 2;
  return random.integer(3, draw < 0.95 ? 5 : 10);
}
