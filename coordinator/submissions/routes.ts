/** /submit and /submissions/NUMBER: handing in URLs, and following them. */
import { type Actor, mayDo } from "#core/actor";
import type { Change } from "#core/audit";
import { howMany } from "#core/format";
import { registrableDomain } from "#core/ip/registrable-domain";
import type { AllowedSpecialPurpose } from "#core/ip/special-purpose";
import { urlKeyOf } from "#core/url-key";
import type { CrawlScope } from "../frontier/frontier.ts";
import type { ActionFault, AskedAction, Outcome, WebPart } from "../web/actions.ts";
import type { BodyOf } from "../web/api-operation.ts";
import { submissionBody, submitBody } from "./page.ts";
import { countWords, ownSiteBounds, type Submission, sumOf } from "./submission.ts";
import type { SubmissionStore } from "./submission-store.ts";
import { submitUrls } from "./submission-store.ts";
import { submissionsApi } from "./submissions-api.ts";

interface SubmissionPorts {
  readonly store: SubmissionStore;
  /** In force now. */
  readonly scope: () => CrawlScope;
  readonly allowSpecialPurpose: AllowedSpecialPurpose;
  /** TXT records of a name; none when there are none, or when they cannot be had. */
  readonly texts: (name: string) => Promise<readonly string[]>;
}

const shownUrls = 100;
const shownSubmissions = 20;
const mostBytes = 1024 * 1024;

export function submissionRoutes(ports: SubmissionPorts): WebPart {
  const { store, scope } = ports;
  return ({ views, actions }) => {
    views.describe({
      ...{ path: "/submit", operation: submissionsApi.submissions },
      view: async () => {
        const submissions = await store.latest(shownSubmissions);
        return {
          status: 200,
          value: { submissions },
          title: "Submit URLs",
          body: (viewer) => submitBody({ submissions, viewer, scope: scope() }),
        };
      },
    });
    actions.describe({
      ...{ path: "/submit", operation: submissionsApi.submitUrls, mostBytes },
      fromForm: ({ urls = "", deed = "add" }) => ({ urls: linesOf(urls), deed }),
      refill: (values, viewer, fault) =>
        submitBody({ submissions: [], viewer, scope: scope(), typed: { values, fault } }),
      act: async (asked) => await submit(asked, ports),
    });
    views.describe({
      ...{ path: "/submissions/:number", operation: submissionsApi.submission },
      view: async ({ param, query, now, visit }) => {
        const receipt = await receiptOf(store, { number: param("number"), after: query("after"), now });
        if (receipt === null) return null;
        const { submission } = receipt;
        if (!mayDo(visit.actor, "url-write") && submission.submittedBy !== visit.actor.name) return null;
        return {
          status: 200,
          value: receipt,
          title: `Submission ${submission.submissionId}`,
          body: (viewer) => submissionBody({ ...receipt, mayRead: mayDo(viewer.actor, "read") }),
        };
      },
    });
  };
}

const linesOf = (text: string) => text.split(/\s+/).filter((line) => line !== "");

type SubmitBody = BodyOf<typeof submissionsApi.submitUrls>;

async function submit(
  { body, actor, now }: AskedAction<SubmitBody>,
  ports: SubmissionPorts,
): Promise<Outcome> {
  const { store, scope, allowSpecialPurpose } = ports;
  const fault = mayDo(actor, "url-write") ? null : await ownSiteFault(body, { actor, now }, ports);
  if (fault !== null) return fault;
  const submission = await submitUrls(body.urls, store, {
    deed: body.deed,
    submittedBy: actor.name,
    scope: scope(),
    allowSpecialPurpose,
    now: () => now,
  });
  const goTo = `/submissions/${submission.submissionId}`;
  const value = await receiptOf(store, { number: String(submission.submissionId), after: "", now });
  const change = submissionChange(submission, body.urls[0] as string);
  return { type: "done", status: 201, value, goTo, said: `${change.words}`, change };
}

/**
 * Why who may only have its own sites fetched again may not have these; null: it may. A site is a token's own when DNS says so,
 * which only who holds the domain can make it say: a TXT record at `_nearcrawl.HOST`, or at `_nearcrawl.` of its registrable
 * domain, with `recrawl=NAME` of the token.
 */
async function ownSiteFault(
  { urls, deed }: SubmitBody,
  { actor, now }: { readonly actor: Actor; readonly now: Date },
  { store, texts }: SubmissionPorts,
): Promise<ActionFault | null> {
  const refused = (status: 400 | 403 | 429, words: string): ActionFault => ({
    ...{ type: "fault", status, title: "Not these URLs", words },
  });
  if (deed !== "recrawl") return refused(403, "Scope site-recrawl takes deed recrawl alone.");
  const { urlsAtOnce, hostsAtOnce, urlsPerDay } = ownSiteBounds;
  if (urls.length > urlsAtOnce)
    return refused(400, `Scope site-recrawl takes at most ${howMany(urlsAtOnce, "URL")} at once.`);
  const keys = urls.map((url) => urlKeyOf(url.trim())).filter((key) => typeof key !== "string");
  const hosts = [...new Set(keys.map(({ host }) => host))];
  if (hosts.length > hostsAtOnce)
    return refused(400, `Scope site-recrawl takes URLs of at most ${howMany(hostsAtOnce, "host")} at once.`);
  if ((await store.urlsSince(actor.name, new Date(now.getTime() - dayMs))) + urls.length > urlsPerDay)
    return refused(429, `At most ${howMany(urlsPerDay, "URL")} in 24 hours: try again later.`);
  const record = `recrawl=${actor.name.replace(/^token /, "")}`;
  const isOwn = async (host: string) => {
    const names = [...new Set([host, registrableDomain(host)])];
    const records = await Promise.all(names.map(async (name) => await texts(`_nearcrawl.${name}`)));
    return records.flat().some((text) => text.trim() === record);
  };
  const owned = await Promise.all(hosts.map(isOwn));
  const others = hosts.filter((_host, at) => !owned[at]);
  if (others.length === 0) return null;
  const words = `Not shown to be yours: ${others.slice(0, 5).join(", ")}. A TXT record at _nearcrawl.${others[0]} with the text ${record} shows it.`;
  return refused(403, words);
}

const dayMs = 86_400_000;

/** For the audit log. */
export function submissionChange(submission: Submission, first: string): Change {
  const { submissionId, deed, urls } = submission;
  const many = sumOf(submission);
  const what = deed === "add" ? "submitted" : "submitted for refetching";
  return {
    action: deed === "add" ? "urls-submitted" : "urls-recrawled",
    target: many === 1 ? first.slice(0, 500) : `submission ${submissionId}`,
    words: `${howMany(many, "URL")} ${what} (submission ${submissionId}): ${countWords(submission)}.`,
    after: { submissionId, ...urls },
  };
}

async function receiptOf(
  store: SubmissionStore,
  { number, after, now }: { readonly number: string; readonly after: string; readonly now: Date },
) {
  if (!/^[1-9]\d{0,14}$/.test(number)) return null;
  const submission = await store.find(Number(number));
  if (submission === null) return null;
  const from = /^\d{1,9}$/.test(after) ? Number(after) : 0;
  const found = await store.urls(submission.submissionId, { after: from, limit: shownUrls + 1, now });
  const urls = found.slice(0, shownUrls);
  return { submission, urls, next: found.length > shownUrls ? (urls.at(-1)?.place ?? null) : null };
}
