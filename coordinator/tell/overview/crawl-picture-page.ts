/**
 * The crawl in one picture: crawlers on a circle, and within it their subnets as dots in their colours. The crawlers with the
 * most subnets are in order from west to east. Each has a wedge that fills from its own side.
 */
import { howMany } from "#core/format";
import { countText, crawlerColour, othersColour } from "../../web/format.ts";
import { type Html, html } from "../../web/html.ts";
import type { FleetLine } from "../fleet/fleet-api.ts";
import type { Overview } from "./overview-api.ts";

type Pictured = Pick<Overview, "fleet" | "totals">;

/** More wedges would cover each other, so the other crawlers share one. */
const mostWedges = 12;
const [width, height] = [440, 300];
const [centreX, centreY] = [width / 2, height / 2];
const [innermost, outermost, ring] = [36, 112, 126];
/** Distances between dots. The widest that fits the largest crawler is used. At the narrowest, a dot may be several subnets. */
const pitches = [22, 18, 15, 12, 10, 8.6];
const longestName = 14;

interface Wedge {
  readonly name: string;
  readonly subnets: number;
  readonly crawler: FleetLine | null;
}

interface Spot {
  readonly x: number;
  readonly y: number;
}

export function crawlPicture(overview: Pictured): Html {
  const { fleet, totals } = overview;
  if (fleet.length === 0 || totals.subnetsDelegated === 0) return firstSteps(overview);
  const wedges = wedgesOf(fleet);
  const most = Math.max(...wedges.map(({ subnets }) => subnets));
  const room = (pitch: number) => seatsOf(0, wedges.length, pitch).length;
  const pitch = pitches.find((one) => room(one) >= most) ?? (pitches.at(-1) as number);
  const perDot = Math.max(1, Math.ceil(most / room(pitch)));
  const each = wedges.map(({ name, subnets }) => `${name} ${countText(subnets)}`).join(", ");
  const words = `${howMany(fleet.length, "crawler")} and the ${countText(totals.subnetsDelegated)} subnets nearest to them: ${each}`;
  const colours = wedges.map(({ crawler }) =>
    crawler === null ? othersColour : crawlerColour(crawler.crawlerId),
  );
  const path = ({ subnets }: Wedge, index: number) => {
    const seats = seatsOf(index, wedges.length, pitch).slice(0, Math.ceil(subnets / perDot));
    return html`<path stroke="${colours[index]}" stroke-width="${round(pitch * 0.66)}" d="${dots(seats)}"/>`;
  };
  const dot = perDot === 1 ? "a subnet" : `${countText(perDot)} subnets`;
  return html`<figure class="crawl-picture"><svg viewBox="0 0 ${width} ${height}" role="group" aria-label="${words}">
${wedges.map(path)}
<text class="picture-figure" x="${centreX}" y="${centreY + 3}">${countText(totals.subnetsDelegated)}</text><text
class="picture-words" x="${centreX}" y="${centreY + 17}">subnets</text>
${wedges.map((wedge, index) => crawlerMark(wedge, index, wedges.length))}
</svg><figcaption class="small">Each dot is ${dot}, in the colour of the crawler that is nearest and so fetches its
pages.</figcaption></figure>`;
}

/** Returns the wedges from west to east. Crawlers without a stated place come last. */
function wedgesOf(fleet: readonly FleetLine[]): Wedge[] {
  const bySubnets = [...fleet].sort((a, b) => b.subnets - a.subnets);
  const named = fleet.length > mostWedges ? bySubnets.slice(0, mostWedges - 1) : bySubnets;
  const others = bySubnets.slice(named.length);
  const wedges: Wedge[] = [...named]
    .sort((a, b) => (a.longitude ?? 181) - (b.longitude ?? 181))
    .map((crawler) => ({ name: crawler.name, subnets: crawler.subnets, crawler }));
  if (others.length === 0) return wedges;
  const subnets = others.reduce((sum, one) => sum + one.subnets, 0);
  return [...wedges, { name: `${countText(others.length)} more`, subnets, crawler: null }];
}

/** West is on the left, and eastwards means clockwise. */
const angleOf = (index: number, count: number) =>
  Math.PI + (2 * Math.PI * (index + 0.5)) / count - Math.PI / 2;

const at = (radius: number, angle: number): Spot => ({
  x: round(centreX + radius * Math.cos(angle)),
  y: round(centreY + radius * Math.sin(angle)),
});

/** Returns rows from the rim inwards, each filled from its middle, like a theatre facing the crawler. */
function seatsOf(index: number, count: number, pitch: number): Spot[] {
  const middle = angleOf(index, count);
  const seats: Spot[] = [];
  for (let radius = outermost - pitch / 4; radius >= innermost; radius -= pitch) {
    const step = pitch / radius;
    const half = Math.PI / count - step * 0.55;
    const aside = Math.max(0, Math.floor(half / step));
    for (let seat = 0; seat <= 2 * aside; seat++) {
      const steps = (seat % 2 === 0 ? 1 : -1) * Math.ceil(seat / 2);
      seats.push(at(radius, middle + steps * step));
    }
  }
  return seats;
}

/** Draws dots as the round caps of strokes without length. */
function dots(seats: readonly Spot[]): string {
  return seats.map(({ x, y }) => `M${x} ${y}h0`).join("");
}

function crawlerMark({ name, subnets, crawler }: Wedge, index: number, count: number): Html {
  const angle = angleOf(index, count);
  const spot = at(ring, angle);
  const label = at(ring + 12, angle);
  const aside = Math.cos(angle);
  const anchor = aside > 0.2 ? "start" : aside < -0.2 ? "end" : "middle";
  const drop = Math.abs(aside) <= 0.2 ? (Math.sin(angle) > 0 ? 8 : 0) : 4;
  const shown = [...name].length > longestName ? `${[...name].slice(0, longestName - 1).join("")}…` : name;
  const text = html`<text class="picture-name" x="${label.x}" y="${round(label.y + drop)}"
text-anchor="${anchor}">${shown}</text>`;
  if (crawler === null) return text;
  const title = `${name}: ${crawler.state}, ${howMany(subnets, "subnet")}`;
  const [colour, hollow] = [crawlerColour(crawler.crawlerId), crawler.state === "offline" ? " hollow" : ""];
  return html`<a href="/crawlers/${encodeURIComponent(name)}"><title>${title}</title><circle class="picture-crawler${hollow}"
fill="${colour}" stroke="${colour}" cx="${spot.x}" cy="${spot.y}" r="5"/>${text}</a>`;
}

const round = (value: number) => Math.round(value * 10) / 10;

/** The first steps of a new system. */
function firstSteps({ fleet, totals }: Pictured): Html {
  const steps = [
    [
      fleet.length > 0,
      html`<a href="/fleet/invite">Invite a partner</a> to run a crawler, or start one with <code>nearcrawl crawler</code>.`,
    ],
    [
      totals.generation !== null,
      html`<a href="/registry">Import the registries</a>, so that every address belongs to a subnet.`,
    ],
    [totals.urls > 0, html`<a href="/submit">Submit URLs</a> to begin with.`],
    [
      false,
      html`The first probe round finds the nearest crawler of each subnet, and its pages are fetched from there.`,
    ],
  ] as const;
  const next = steps.findIndex(([isDone]) => !isDone);
  return html`<div class="empty first-steps"><p><strong>Every page is fetched by the nearest crawler.</strong> So it begins:</p>
<ol>${steps.map(
    ([isDone, words], index) =>
      html`<li${index === next && html` aria-current="step"`}>${words}${isDone && html` <strong>Done.</strong>`}</li>`,
  )}</ol></div>`;
}
