/** /fleet/site-caps: sites that operators have slowed down; who may change policies sets and removes caps. */
import { UsageError } from "#core/errors";
import type { AskedAction, Outcome, WebPart } from "../web/actions.ts";
import type { BodyOf } from "../web/api-operation.ts";
import { siteCapsBody, siteCapsCsv } from "./page.ts";
import { capChange, capRemoval, readDelayMs, readSite } from "./site-cap.ts";
import type { SiteCapStore } from "./site-cap-store.ts";
import { siteCapsApi } from "./site-caps-api.ts";

const path = "/fleet/site-caps";

export function siteCapRoutes(store: SiteCapStore): WebPart {
  return ({ views, actions }) => {
    views.describe({
      ...{ path, operation: siteCapsApi.siteCaps },
      view: async () => {
        const caps = await store.list();
        return {
          status: 200,
          value: { caps },
          title: "Caps on sites",
          body: (viewer) => siteCapsBody({ caps, viewer }),
          csv: () => siteCapsCsv(caps),
        };
      },
    });
    actions.describe({
      ...{ path, operation: siteCapsApi.setSiteCap },
      fromForm: ({ site = "", seconds = "", words = "" }) => ({
        ...{ site, words },
        seconds: seconds.trim() === "" ? Number.NaN : Number(seconds),
      }),
      refill: (values, viewer, fault) => siteCapsBody({ caps: [], viewer, typed: { values, fault } }),
      act: async (asked) => await set(asked, store),
    });
    actions.describe({
      ...{ path: `${path}/:site/remove`, operation: siteCapsApi.removeSiteCap },
      fromForm: () => ({}),
      act: async (asked) => await remove(asked, store),
    });
  };
}

async function set(
  { body, actor, now }: AskedAction<BodyOf<typeof siteCapsApi.setSiteCap>>,
  store: SiteCapStore,
): Promise<Outcome> {
  try {
    const asked = { site: readSite(body.site), delayMs: readDelayMs(body.seconds), words: body.words.trim() };
    const cap = await store.set({ ...asked, setBy: actor.name, setAt: now });
    const change = capChange(cap);
    return { type: "done", status: 201, value: cap, goTo: path, said: change.words, change };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const values = { site: body.site, seconds: String(body.seconds), words: body.words };
    return {
      ...{ type: "fault", status: 422, title: "That cap cannot be", words: error.message },
      again: (viewer, fault) => siteCapsBody({ caps: [], viewer, typed: { values, fault } }),
    };
  }
}

async function remove({ param }: AskedAction<unknown>, store: SiteCapStore): Promise<Outcome> {
  const removed = await store.remove(param("site"));
  if (removed === null)
    return {
      ...{ type: "fault", status: 404, title: "Not known" },
      words: `${param("site").slice(0, 100)} has no cap.`,
    };
  const change = capRemoval(removed);
  return { type: "done", value: removed, goTo: path, said: change.words, change };
}
