/** The map of countries: how far away each one's subnets are crawled from, where the crawlers stand, and all as tables. */
import { howMany, leastSamples } from "#core/format";
import { countText, crawlerLink } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import type { MapPoint, WorldMap } from "../web/world-map.ts";
import { hexOf, stepLook } from "./colours.ts";
import {
  type CountryLine,
  type CountryMapAnswer,
  countryName,
  type MapCrawler,
  rttStep,
  rttStepLabels,
  rttWords,
} from "./country-map.ts";
import { shareBar, sharePatterns } from "./share-bar-page.ts";

export function countryMapBody(answer: CountryMapAnswer, world: WorldMap): Html {
  const { countries, totals } = answer;
  if (countries.length === 0)
    return html`${head}
<div class="empty"><p>No registry has been imported yet, so no country has subnets. The command <code>nearcrawl rir apply</code> imports one; <a href="/registry">Registry</a> shows what there is.</p></div>`;
  return html`${head}
<p class="lead">${countText(totals.countries)} ${totals.countries === 1 ? "country" : "countries"} with ${howMany(totals.subnets, "subnet")}, ${countText(totals.crawled)} of them crawled, by a delegation of their own or of a less specific subnet. Colour: median round-trip time of the subnets that are assigned directly.</p>
${picture(answer, world)}
${key(answer)}
<div data-part="panel" id="panel" tabindex="-1">${answer.picked === null ? nothing : panel(answer.picked)}</div>
${sharePatterns}${countryTable(answer)}
${crawlerTable(answer)}`;
}

const head = html`<div class="title-row"><h1>Map of countries</h1><a href="/explore">Explore the address space</a></div>`;

const addressOf = (country: string) => `${pathWith("/explore/map", { country })}#panel`;

function picture(answer: CountryMapAnswer, world: WorldMap): Html {
  const lines = new Map(answer.countries.map((line) => [line.country, line]));
  const shapes = [...world.countries].map(([country, shape]) => {
    const line = lines.get(country);
    const look = line === undefined ? html`class="unknown"` : lookOf(line);
    const dot = shape.isSmall
      ? html`<circle ${look} cx="${shape.middle.x}" cy="${shape.middle.y}" r="3"/>`
      : nothing;
    const drawn = html`<path ${look} d="${shape.path}"/>${dot}`;
    if (line === undefined) return drawn;
    const isPicked = answer.picked?.country === country;
    return html`<a href="${addressOf(country)}"${isPicked ? html` class="picked"` : nothing}><title>${lineWords(line)}</title>${drawn}</a>`;
  });
  return html`<svg class="world" viewBox="0 0 ${world.width} ${world.height}" role="group" aria-label="Map of the world: countries by round-trip time, and ${howMany(answer.crawlerCount, "crawler")}. The tables below say the same in figures.">
<defs><pattern id="few" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="few-ground" width="5" height="5"/><rect class="few-line" width="2" height="5"/></pattern></defs>
<path class="unknown" d="${world.otherLand}"/>${shapes}
${answer.crawlers.map((crawler) => marker(crawler, world))}
</svg>`;
}

function lookOf(line: CountryLine): Html {
  const step = rttStep(line);
  if (step !== null) return html`fill="${hexOf(stepLook(step))}"`;
  return line.state === "few" ? html`class="few" fill="url(#few)"` : html`class="nobody"`;
}

const lineWords = (line: CountryLine) =>
  `${line.name}: ${rttWords(line)}; ${countText(line.crawled)} of ${howMany(line.subnets, "subnet")} crawled`;

function marker(crawler: MapCrawler, world: WorldMap): Html {
  const at = pointOf(crawler, world);
  if (at === null) return nothing;
  const { name, placedBy, state, subnets } = crawler;
  const guess = placedBy === "country" ? ", at the middle of its country" : "";
  return html`<a href="/crawlers/${encodeURIComponent(name)}"><title>${name}: ${state}, ${howMany(subnets, "subnet")}${guess}</title><circle class="crawler ${state}${placedBy === "country" ? " guessed" : ""}" cx="${at.x}" cy="${at.y}" r="4"/></a>`;
}

function pointOf({ placedBy, latitude, longitude, country }: MapCrawler, world: WorldMap): MapPoint | null {
  if (placedBy === "coordinates") return world.place(latitude ?? 0, longitude ?? 0);
  return placedBy === "country" ? (world.countries.get(country ?? "")?.middle ?? null) : null;
}

function key({ countries, crawlers }: CountryMapAnswer): Html {
  const counts = rttStepLabels.map((_, step) => countries.filter((line) => rttStep(line) === step).length);
  const few = countries.filter(({ state }) => state === "few").length;
  const nobody = countries.filter(({ state }) => state === "nobody").length;
  const isGuessed = crawlers.some(({ placedBy }) => placedBy === "country");
  const offline = crawlers.filter(({ state }) => state === "offline").length;
  const entry = (look: Html, words: string, count: number) =>
    html`<li><svg viewBox="0 0 16 16" aria-hidden="true">${look}</svg> <span class="name">${words}</span> <span class="small number">${countText(count)}</span></li>`;
  return html`<ul class="map-key world-key">
${rttStepLabels.map((label, step) => entry(html`<rect width="16" height="16" fill="${hexOf(stepLook(step))}"/>`, label, counts[step] ?? 0))}
${entry(html`<rect class="few" width="16" height="16" fill="url(#few)"/>`, `crawled, too few measured yet (under ${leastSamples})`, few)}
${entry(html`<rect class="nobody" width="16" height="16"/>`, "registered, not crawled", nobody)}
<li><svg viewBox="0 0 16 16" aria-hidden="true"><circle class="crawler online" cx="8" cy="8" r="5"/></svg> <span class="name">crawler${isGuessed ? "; hollow: at the middle of its country, for want of coordinates" : ""}</span></li>
${offline === 0 ? nothing : entry(html`<circle class="crawler offline" cx="8" cy="8" r="5"/>`, "crawler, offline", offline)}
</ul>`;
}

function panel(line: CountryLine): Html {
  const country = line.country ?? "";
  return html`<section class="pick" aria-labelledby="pick-title"><h2 id="pick-title">${line.name}</h2>
<dl class="facts">
<div><dt>Subnets</dt><dd>${countText(line.subnets)}</dd></div>
<div><dt>Crawled</dt><dd>${countText(line.crawled)}</dd></div>
<div><dt>Median round-trip time</dt><dd>${rttWords(line)}${line.measured === 0 ? nothing : html` <span class="small">of ${howMany(line.measured, "subnet")} measured</span>`}</dd></div>
<div><dt>Pages per day</dt><dd>${countText(line.pagesPerDay)}</dd></div>
</dl>
${shareBar(line.crawledBy)}
<p class="pick-links"><a href="${pathWith("/explore", { view: "list", country })}">Its subnets</a> <a href="${pathWith("/explore", { view: "map", country })}">Its part of the address space</a> <a href="${pathWith("/sites", { country })}">Its sites</a> <a href="/explore/map">Close</a></p>
</section>`;
}

function countryTable({ countries }: CountryMapAnswer): Html {
  return html`<section><h2 id="countries-title">Countries</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Countries">
<table><thead><tr><th scope="col">Country</th><th scope="col" class="number">Subnets</th><th scope="col" class="number">Crawled</th><th scope="col">By whom</th><th scope="col" class="number">Median RTT</th><th scope="col" class="number">Measured</th><th scope="col" class="number">Pages per day</th></tr></thead>
<tbody>${countries.map(countryRow)}</tbody></table></div></section>`;
}

function countryRow(line: CountryLine): Html {
  const { country, name, subnets, crawled, crawledBy, measured, pagesPerDay } = line;
  const title = country === null ? html`${name}` : html`<a href="${addressOf(country)}">${name}</a>`;
  return html`<tr><th scope="row">${title}</th><td class="number">${countText(subnets)}</td><td class="number">${countText(crawled)}</td><td>${shareBar(crawledBy)}</td><td class="number">${rttWords(line)}</td><td class="number">${countText(measured)}</td><td class="number">${countText(pagesPerDay)}</td></tr>`;
}

const placingWords = {
  coordinates: "by its coordinates",
  country: "middle of its country",
  nothing: "not on the map: it states neither coordinates nor a country",
} as const;

function crawlerTable({ crawlers, crawlerCount }: CountryMapAnswer): Html {
  if (crawlers.length === 0)
    return html`<div class="empty"><p>No crawler has joined yet. <a href="/fleet/invitations">Invite a partner</a>.</p></div>`;
  const rest = crawlerCount - crawlers.length;
  return html`<section><h2 id="crawlers-title">Crawlers on the map</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Crawlers on the map">
<table><thead><tr><th scope="col">Crawler</th><th scope="col">Where</th><th scope="col">Placed</th><th scope="col">State</th><th scope="col" class="number">Subnets</th></tr></thead>
<tbody>${crawlers.map(
    ({ name, place, country, placedBy, state, subnets }) =>
      html`<tr><th scope="row"><bdi>${crawlerLink(name)}</bdi></th><td><bdi>${place ?? (country === null ? "–" : countryName(country))}</bdi></td><td>${placingWords[placedBy]}</td><td>${state}</td><td class="number">${countText(subnets)}</td></tr>`,
  )}</tbody></table></div>
${rest === 0 ? nothing : html`<p class="small">The ${crawlers.length} with most subnets; ${countText(rest)} more are in the <a href="/fleet">list of crawlers</a>.</p>`}</section>`;
}
