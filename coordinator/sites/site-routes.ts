/** /sites/:host: one host, part by part; who may hand in URLs has it fetched again. */

import type { Change } from "#core/audit";
import { howMany } from "#core/format";
import type { HostHash, UrlHash } from "#core/ids";
import { timeRange } from "#core/time-range";
import { hostHashOf } from "#core/url-key";
import { documentCsv } from "../ask/text-rendering.ts";
import { changesTable } from "../changes/changes-ask.ts";
import type { PageChange } from "../changes/page-change.ts";
import type { AskedAction, Outcome, WebPart } from "../web/actions.ts";
import type { BodyOf } from "../web/api-operation.ts";
import { askedOf } from "../web/asked.ts";
import { confirmationOf, unconfirmed } from "../web/form-fields.ts";
import type { CsvTable } from "../web/html.ts";
import { answerSite, type SitePorts, siteNamed } from "./site.ts";
import { mostFetchedAgain, type SiteAnswer, siteApi, siteParameters } from "./site-api.ts";
import { siteBody, sitePath, siteUrlsCsv } from "./site-page.ts";

interface SiteRoutePorts extends SitePorts {
  readonly scheduled: (
    hostHash: HostHash,
    asked: { readonly now: Date; readonly most: number },
  ) => Promise<UrlHash[]>;
  readonly fetchAgain: (
    hostHash: HostHash,
    keys: readonly { readonly hostHash: HostHash; readonly urlHash: UrlHash }[],
    now: Date,
  ) => Promise<number>;
}

const path = "/sites/:host";

export function siteRoutes(ports: SiteRoutePorts): WebPart {
  return ({ views, actions }) => {
    views.describe({
      ...{ path, operation: siteApi.site },
      view: async ({ param, query, now }) => {
        const range = timeRange(query, now, query("part") === "speed" ? "30d" : "7d");
        const read = askedOf(siteParameters, query);
        if (typeof read === "string") return read;
        const asked = { ...read, host: param("host"), range };
        const value = await answerSite(asked, ports, now);
        const csv = csvOf(value);
        return {
          status: value.found ? 200 : 404,
          value,
          title: value.site?.name ?? "Unknown host",
          body: (viewer) => siteBody({ answer: value, asked, viewer }),
          ...(csv === null ? {} : { csv: () => csv }),
        };
      },
    });
    actions.describe({
      ...{ path: `${path}/fetch-again`, operation: siteApi.fetchSiteAgain },
      fromForm: confirmationOf,
      act: async (asked) => await again(asked, ports),
    });
  };
}

function csvOf({ pages, changes }: SiteAnswer): CsvTable | null {
  if (pages !== null) return siteUrlsCsv(pages.urls);
  return changes === null
    ? null
    : documentCsv({ title: "", nodes: [changesTable(changes.changes as readonly PageChange[], ["", ""])] });
}

async function again(
  { body, param, now }: AskedAction<BodyOf<typeof siteApi.fetchSiteAgain>>,
  ports: SiteRoutePorts,
): Promise<Outcome> {
  const host = siteNamed(param("host"));
  const hostHash = host === null ? null : hostHashOf(host);
  if (host === null || hostHash === null || (await ports.sites.siteRow(hostHash, now)) === null) {
    const words = `The crawl does not know ${(host ?? param("host")).slice(0, 100)}.`;
    return { type: "fault", status: 404, title: "Not known", words };
  }
  const refused = unconfirmed(body, { text: host, words: "the host's name" });
  if (refused !== null) return refused;
  const keys = await ports.scheduled(hostHash, { now, most: mostFetchedAgain });
  const urls = await ports.fetchAgain(
    hostHash,
    keys.map((urlHash) => ({ hostHash, urlHash })),
    now,
  );
  if (urls === 0) {
    const words = `Nothing of ${host} is scheduled for later: what there is of it is due already, or not fetched any more.`;
    return { type: "fault", status: 409, title: "Nothing to fetch again", words };
  }
  const change = againChange(host, urls);
  return { type: "done", value: { host, urls }, goTo: sitePath(host), said: change.words, change };
}

/** For the audit log. */
function againChange(host: string, urls: number): Change {
  return {
    action: "site-recrawled",
    target: host,
    words: `${howMany(urls, "page")} of ${host} ${urls === 1 ? "is" : "are"} due now, at the host's pace.`,
    after: { urls },
  };
}
