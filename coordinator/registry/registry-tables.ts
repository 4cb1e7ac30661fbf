/** The tables of /registry: counts by registry, the files in force, the download cache, who publishes on which terms. */
import type { CopyState, SourceRow } from "#rir-import/download/source-status";
import type { RegistryPublisher } from "#rir-import/registry-publishers";
import { countText, instant } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import { bytesText } from "../who/words.ts";
import type { RegistryValue } from "./registry-facts.ts";

export function countsSection({ counted, sources }: RegistryValue): Html {
  if (counted === null) return nothing;
  const rows = counted.registries.map(
    (
      one,
    ) => html`<tr><th scope="row"><a href="${pathWith("/explore", { registry: one.registry })}">${one.registry}</a></th>
<td class="number">${countText(one.subnets)}</td><td class="number">${countText(one.ipv4Subnets)}</td><td class="number">${countText(one.ipv6Subnets)}</td><td class="number">${countText(one.holders)}</td>
<td class="number">${countText(one.ipv4Addresses)}</td><td class="number">${countText(one.ipv6Slash48s)}</td><td class="number">${countText(one.crossing)}</td><td class="number">${newestAge(sources, one.registry)}</td></tr>`,
  );
  return html`<section><h2>What it is made of</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Counts by registry"><table><thead><tr><th scope="col">Registry</th><th scope="col" class="number">Subnets</th><th scope="col" class="number">IPv4</th><th scope="col" class="number">IPv6</th><th scope="col" class="number">Holders</th><th scope="col" class="number">IPv4 addresses</th><th scope="col" class="number">IPv6 /48s</th><th scope="col" class="number">Crossing</th><th scope="col" class="number">Data, days old</th></tr></thead><tbody>${rows}</tbody></table></div></section>`;
}

/** A single answer of a registry says nothing of the age of its files. */
function newestAge(sources: RegistryValue["sources"], registry: string): string {
  const ages = sources
    .filter((source) => source.registry === registry && source.format !== "rdap")
    .flatMap(({ ageDays }) => ageDays ?? []);
  return ages.length === 0 ? "–" : countText(Math.min(...ages));
}

export function sourcesSection({ sources }: RegistryValue): Html {
  if (sources.length === 0) return nothing;
  const rows = sources.map(
    ({ file, format, registry, fileDate, ageDays, kept, malformed }) =>
      html`<tr><th scope="row" title="${file}">${file.split("/").at(-1) ?? file}</th><td>${format}</td><td>${registry ?? "–"}</td><td class="nowrap">${fileDate ?? "–"}</td><td class="number">${ageDays === null ? "–" : countText(ageDays)}</td><td class="number">${countText(kept)}</td><td class="number">${countText(malformed)}</td></tr>`,
  );
  return html`<details class="listed"><summary>The ${sources.length === 1 ? "file" : `${sources.length} files`} that it was made from</summary>
<div class="scroll" tabindex="0" role="region" aria-label="Files in force"><table><thead><tr><th scope="col">File</th><th scope="col">Format</th><th scope="col">Registry</th><th scope="col">Data of</th><th scope="col" class="number">Days old</th><th scope="col" class="number">Records kept</th><th scope="col" class="number">Refused</th></tr></thead><tbody>${rows}</tbody></table></div></details>`;
}

export function cacheSection({ cache }: RegistryValue): Html {
  if (cache === null || cache.fault !== null) return nothing;
  const there = cache.sources.filter(({ bytes }) => bytes !== null);
  const bytes = there.reduce((sum, source) => sum + (source.bytes ?? 0), 0);
  return html`<section><h2>Download cache</h2>
<p class="small break">${completeWords(cache.sources)} ${there.length === 0 ? nothing : `${there.length} files, ${bytesText(bytes)}. `}Kept in <span class="mono">${cache.folder}</span>. Told to the registries as our contact: ${cache.contact ?? "nobody"}.</p>
<div class="scroll cache" tabindex="0" role="region" aria-label="Download cache"><table><thead><tr><th scope="col">Source</th><th scope="col">Registry</th><th scope="col">Our copy</th><th scope="col" class="number">Size</th><th scope="col">Data of</th><th scope="col" class="number">Days old</th><th scope="col" class="number">Asked, days ago</th></tr></thead><tbody>${cache.sources.map(sourceRow)}</tbody></table></div></section>`;
}

function completeWords(sources: readonly SourceRow[]): string {
  const missing = sources.filter(({ state }) => state === "missing" || state === "changed on disk");
  if (missing.length === 0) return "Complete.";
  const wanted = sources.filter(({ state }) => state !== "off" && state !== "not set up");
  if (missing.length === wanted.length) return "Nothing was fetched yet.";
  return `Not complete, ${missing.map(({ name }) => name).join(", ")} ${missing.length === 1 ? "is" : "are"} missing.`;
}

const stateLooks: Readonly<Record<CopyState, string>> = {
  fresh: "good",
  stale: "warm",
  "old at its source": "warm",
  missing: "bad",
  "changed on disk": "bad",
  "not set up": "none",
  off: "none",
  "not in the list": "none",
};

function sourceRow(source: SourceRow): Html {
  const { name, registry, access, url, state, bytes, dataDate, dataAgeDays, checkedDaysAgo } = source;
  const how =
    access.type === "on-request" && state === "not set up"
      ? html`<span class="small">on request: ${access.how}</span>`
      : html`<span class="small published-at">${url ?? nothing}</span>`;
  return html`<tr><th scope="row">${name}${how}</th><td>${registry}</td><td><span class="state look-${stateLooks[state]} nowrap">${state}</span></td>
<td class="number">${bytes === null ? "–" : bytesText(bytes)}</td><td class="nowrap">${dataDate === null ? "–" : instant(dataDate)}</td><td class="number">${dataAgeDays ?? "–"}</td><td class="number">${checkedDaysAgo ?? "–"}</td></tr>`;
}

export function publisherSection(publishers: readonly RegistryPublisher[]): Html {
  const items = publishers.map(
    ({ name, region, publishes, terms, termsUrl }) =>
      html`<div><dt>${name}</dt><dd>${region}: ${publishes}. ${terms} <a href="${termsUrl}" rel="noreferrer">Terms</a></dd></div>`,
  );
  return html`<section><h2>Who publishes it, on which terms</h2><dl class="publishers">${items}</dl>
<p class="small">Hints, no advice: what counts is what the registries say. The cache holds their data; keep its folder to this service.</p></section>`;
}
