/** The pages /submit and /submissions/NUMBER: submitting URLs and following their progress. */
import { z } from "zod";
import { type Actor, mayDo } from "#core/actor";
import { howMany } from "#core/format";
import { registrableDomain } from "#core/ip/registrable-domain";
import { urlKeyOf } from "#core/url-key";
import { column, form, lead, note, onward, section, table } from "../../ask/document.ts";
import { type Action, Fault, operationsOf } from "../../ask/operation.ts";
import { errorAnswer } from "../../web/api-operation.ts";
import { askAbout, countText, crawlerLink, instant, sentence } from "../../web/format.ts";
import { type Html, html, nothing, pathWith } from "../../web/html.ts";
import type { PageViewer } from "../../web/page-frame.ts";
import {
  countWords,
  type FollowedUrl,
  ownSiteBounds,
  type Submission,
  type SubmissionDeed,
  submission,
  submissionBounds,
  submissionChange,
  submissionDeeds,
  submittedUrl,
  sumOf,
} from "./submission.ts";
import type { SubmissionStore } from "./submission-store.ts";

export interface SubmissionPorts {
  readonly store: Pick<SubmissionStore, "latest" | "find" | "urls" | "urlsSince">;
  readonly submit: (urls: readonly string[], by: Submitter) => Promise<Submission>;
  /** Says what the scope in force prevents from being followed. */
  readonly notFollowed: () => readonly string[];
  /** Looks up TXT records of a name; empty if there are none or the look-up fails. */
  readonly texts: (name: string) => Promise<readonly string[]>;
}

interface Submitter {
  readonly deed: SubmissionDeed;
  readonly submittedBy: string;
  readonly now: () => Date;
}

const shownUrls = 100;
const shownSubmissions = 20;

const { get, post } = operationsOf<SubmissionPorts>();

const receipt = z
  .object({
    submission,
    urls: z.array(submittedUrl),
    next: z.int().nullable().describe("Value of after= for the next part; null: this is the last."),
  })
  .meta({ id: "SubmissionReceipt" });

async function receiptOf(store: SubmissionPorts["store"], of: Submission, after: number, now: Date) {
  const found = await store.urls(of.submissionId, { after, limit: shownUrls + 1, now });
  const urls = found.slice(0, shownUrls);
  return { submission: of, urls, next: found.length > shownUrls ? (urls.at(-1)?.place ?? null) : null };
}

const submitUrls = post({
  ...{ path: "/api/urls", page: "/submit", needs: "site-recrawl", mostBytes: 1024 * 1024 },
  label: "Submit URLs",
  summary: "Submit URLs, or have them fetched again",
  description:
    "Scope url-write; or site-recrawl, with deed recrawl and at most 1,000 URLs of 20 hosts at once and 10,000 in 24 " +
    "hours, for sites that name the token: a TXT record at _nearcrawl.HOST, or at _nearcrawl. of its registrable " +
    "domain, with the text recrawl=NAME. Each URL is answered at once: new, known, elsewhere or refused with the " +
    "reason. The receipt is at /submissions/NUMBER for 90 days. deed recrawl makes known URLs due now; at the usual " +
    "politeness. The URL of a sitemap or feed adds the URLs of its own host that it lists.",
  input: z.object({
    urls: z
      .array(z.string().min(1).max(4096).meta({ format: "uri-reference" }))
      .min(1)
      .max(submissionBounds.urls)
      .meta({
        title: `URLs, one per line, ${countText(submissionBounds.urls)} at most`,
        example: "https://www.example.org/",
      }),
    deed: z
      .enum(submissionDeeds)
      .default("add")
      .meta({
        title: "Action",
        "x-enumDescriptions": {
          add: "Crawl them; known URLs keep their schedule",
          recrawl: "Fetch known URLs again now, at the usual politeness",
        },
      }),
  }),
  output: receipt,
  example: { urls: ["https://www.example.org/"], deed: "add" },
  answer: { status: 201, description: "The receipt, with its first 100 URLs" },
  faults: { 400: "The body is not as described, or more than the scope takes" },
  answers: { 413: errorAnswer("The body is larger than 1 MB") },
  run: async ({ input, ports, actor, now }) => {
    if (!mayDo(actor, "url-write")) await mayHaveFetchedAgain(input, { actor, now }, ports);
    const { urls, deed } = input;
    const made = await ports.submit(urls, { deed, submittedBy: actor.name, now: () => now });
    return await receiptOf(ports.store, made, 0, now);
  },
  change: ({ submission: made, urls }) => submissionChange(made, urls[0]?.url ?? ""),
  goTo: ({ submission: { submissionId } }) => `/submissions/${submissionId}`,
});

/**
 * Throws if the asker may only have its own sites fetched again, and these are not its own. A site is a token's own
 * if DNS says so, which only the holder of the domain can arrange: a TXT record at `_nearcrawl.HOST`, or at
 * `_nearcrawl.` of its registrable domain, with `recrawl=NAME` of the token.
 */
async function mayHaveFetchedAgain(
  { urls, deed }: { readonly urls: readonly string[]; readonly deed: SubmissionDeed },
  { actor, now }: { readonly actor: Actor; readonly now: Date },
  { store, texts }: SubmissionPorts,
): Promise<void> {
  const refused = (status: 400 | 403 | 429, words: string) => new Fault(status, words, "Not these URLs");
  if (deed !== "recrawl") throw refused(403, "Scope site-recrawl takes deed recrawl alone.");
  const { urlsAtOnce, hostsAtOnce, urlsPerDay } = ownSiteBounds;
  if (urls.length > urlsAtOnce)
    throw refused(400, `Scope site-recrawl takes at most ${howMany(urlsAtOnce, "URL")} at once.`);
  const keys = urls.map((url) => urlKeyOf(url.trim())).filter((key) => typeof key !== "string");
  const hosts = [...new Set(keys.map(({ host }) => host))];
  if (hosts.length > hostsAtOnce)
    throw refused(400, `Scope site-recrawl takes URLs of at most ${howMany(hostsAtOnce, "host")} at once.`);
  if ((await store.urlsSince(actor.name, new Date(now.getTime() - dayMs))) + urls.length > urlsPerDay)
    throw refused(429, `At most ${howMany(urlsPerDay, "URL")} in 24 hours: try again later.`);
  const record = `recrawl=${actor.name.replace(/^token /, "")}`;
  const isOwn = async (host: string) => {
    const names = [...new Set([host, registrableDomain(host)])];
    const records = await Promise.all(names.map(async (name) => await texts(`_nearcrawl.${name}`)));
    return records.flat().some((text) => text.trim() === record);
  };
  const owned = await Promise.all(hosts.map(isOwn));
  const others = hosts.filter((_host, at) => !owned[at]);
  if (others.length === 0) return;
  const words = `Not shown to be yours: ${others.slice(0, 5).join(", ")}. A TXT record at _nearcrawl.${others[0]} with the text ${record} shows it.`;
  throw refused(403, words);
}

const dayMs = 86_400_000;

const submissions = get({
  ...{ path: "/api/submissions", page: "/submit", needs: "url-write" },
  navigation: { group: "Sites", order: 42, entry: "Channels", tab: "Submit", also: ["/submissions"] },
  alsoFound: "url add recrawl",
  summary: "The latest receipts",
  input: z.object({}),
  output: z.object({ submissions: z.array(submission) }).meta({ id: "Submissions" }),
  run: async ({ ports: { store, notFollowed } }) => ({
    ...{ submissions: await store.latest(shownSubmissions), notFollowed: notFollowed() },
  }),
  told: ({ submissions: latest }) => ({ submissions: latest }),
  view: ({ submissions: rows, notFollowed }) => ({
    title: "Submit URLs",
    nodes: [
      lead(`Each URL is answered at once; its receipt tells which crawler fetches it, about when, and with what result.
The URL of a sitemap or feed adds the URLs of its own host that it lists.`),
      form({ operation: submitUrls, title: "", label: "Submit" }),
      note(`Not followed: ${notFollowed.join("; ")}.`),
      note(html`Longer lists, on the coordinator's machine: <code>nearcrawl urls add FILE</code>.
Programs: <code>POST /api/urls</code> with a token of scope url-write.`),
      section("Latest receipts", [
        table<Submission>({
          ...{ label: "Latest receipts", rows },
          empty: ["No submissions yet.", `Receipts are listed here for ${submissionBounds.keepDays} days.`],
          columns: [
            column("submission", "No.", ({ submissionId }) => submissionId, {
              ...{ kind: "number", link: ({ submissionId }) => `/submissions/${submissionId}` },
            }),
            column("submitted_at", "When", ({ submittedAt }) => new Date(submittedAt), { kind: "nowrap" }),
            column("submitted_by", "By", ({ submittedBy }) => submittedBy),
            column("deed", "What", ({ deed }) => (deed === "add" ? "add" : "fetch again")),
            column("urls", "URLs", sumOf, { unit: "count" }),
            column("answers", "Answers", countWords),
            column("fetched", "Fetched since", fetchedText, {
              ...{ kind: "number", value: ({ fetched }) => fetched },
            }),
          ],
        }),
      ]),
    ],
  }),
});

const fetchedText = ({ fetched }: Submission) => (fetched === null ? "not counted" : countText(fetched));

const submissionReceipt = get({
  ...{ path: "/api/submissions/{number}", needs: "site-recrawl" },
  summary: "The state of submitted URLs",
  description:
    "Scope url-write; or site-recrawl, for its own receipts. 100 URLs at a time, starting after `after`.",
  input: z.object({
    number: z.int().meta({ description: "Of the receipt.", example: 7 }),
    after: z.int().min(0).max(999_999_999).optional().describe("The last place already read."),
  }),
  output: receipt,
  faults: { 404: "There is no receipt with this number, or no longer" },
  run: async ({ input: { number, after = 0 }, ports: { store }, actor, now }) => {
    const found = await store.find(number);
    const isOpen = found !== null && (mayDo(actor, "url-write") || found.submittedBy === actor.name);
    return isOpen ? await receiptOf(store, found, after, now) : null;
  },
  view: ({ submission: of, urls: rows, next }, { viewer }) => {
    const { submissionId, submittedAt, submittedBy, deed } = of;
    const mayRead = mayDo(viewer.actor, "read");
    const coverage = pathWith("/coverage", { submission: String(submissionId) });
    return {
      ...{ title: `Submission ${submissionId}`, above: [["Submit URLs", "/submit"]] },
      nodes: [
        lead(html`${deed === "add" ? "Submitted" : "Submitted for refetching"} by ${submittedBy}, ${instant(submittedAt)}:
${countWords(of)}. Fetched since: ${fetchedText(of)}.`),
        note(
          html`This page is kept for ${submissionBounds.keepDays} days. Reload it to see the current state.${
            mayRead &&
            html` How far their hosts are crawled, and what limited them: <a href="${coverage}">coverage</a>.`
          }`,
        ),
        table<FollowedUrl>({
          ...{ label: "URLs of this submission", rows, empty: ["No more URLs.", ""] },
          columns: [
            column("line", "Line", ({ place }) => place, { unit: "count" }),
            column("url", "URL", urlFor(mayRead), { kind: "break", value: ({ url }) => url }),
            column("answer", "Answer", ({ answer }) => html`<span class="kind">${answer}</span>`),
            column("crawler", "Crawler", ({ crawler }) =>
              crawler && mayRead ? crawlerLink(crawler) : crawler,
            ),
            column("now", "Now", ({ words }) => sentence(words), { kind: "wide break" }),
          ],
        }),
        onward({ next, words: "Next" }),
      ],
    };
  },
});

const urlFor =
  (mayRead: boolean) =>
  ({ url, answer }: FollowedUrl) =>
    mayRead && answer !== "refused" ? askAbout(url) : html`<span class="mono">${url}</span>`;

export const submissionOperations = { submitUrls, submissions, submission: submissionReceipt };

const submitOne =
  (deed: SubmissionDeed, label: string) =>
  (url: string): Action => ({ operation: submitUrls, values: { urls: url, deed }, label });

/** Shows the receipt when the request is done. */
export const fetchAgain = submitOne("recrawl", "Fetch again now");

/** For a URL that the frontier does not have. */
export const handIn = submitOne("add", "Crawl it");

export function submitLink({ actor }: PageViewer): Html {
  if (!mayDo(actor, "url-write")) return nothing;
  return html`<p class="small">Something is missing? <a href="/submit">Submit URLs</a>.</p>`;
}
