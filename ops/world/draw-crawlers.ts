/** Where partners are, and how their ranges are registered. */
import { distanceKm, type Place, places } from "./places.ts";
import type { WorldDraft } from "./world-draft.ts";

/** Share of partners that came because a neighbour was one. */
const neighbourShare = 0.4;

/** Share of the others for whom of two places the one farther from all partners is taken. */
const apartShare = 0.7;

/**
 * Every place once, the larger ones likelier first, before any place has two. Some come because a neighbour is
 * one already and others keep apart, so that runners-up are as close as in measured fleets, and gaps as wide.
 */
export function drawCrawlers(draft: WorldDraft, count: number): void {
  const { random, plan } = draft;
  let free = [...places];
  for (let index = 0; index < count; index++) {
    if (free.length === 0) free = [...places];
    const place = placeForPartner(draft, free);
    free.splice(free.indexOf(place), 1);
    const provider = draft.providerFor(place);
    const name = draft.names.crawler(place.name);
    draft.crawlers.push({ ...draft.hostAt(place, provider.network), name });
    const holder = plan.addHolder(`${name} partner library`, place.country, provider.registry);
    const host = { type: "crawler", index, offset: random.integer(2, 6), unary: false } as const;
    plan.assign({ provider, city: place.name, holder, departments: [{ hosts: [host] }] });
    draft.partners.push({ provider, holder });
  }
}

function placeForPartner({ random, crawlers }: WorldDraft, free: readonly Place[]): Place {
  if (crawlers.length > 0 && random.chance(neighbourShare)) {
    const neighbour = random.pick(crawlers);
    return free.reduce((best, one) =>
      distanceKm(one, neighbour) < distanceKm(best, neighbour) ? one : best,
    );
  }
  const drawOne = () => random.pickWeighted(free, (place) => place.weight);
  const first = drawOne();
  if (crawlers.length === 0 || !random.chance(apartShare)) return first;
  const second = drawOne();
  const nearestKm = (place: Place) => Math.min(...crawlers.map((crawler) => distanceKm(place, crawler)));
  return nearestKm(first) >= nearestKm(second) ? first : second;
}
