/** /submit and /submissions/NUMBER: handing in URLs, and following them. */
import { mayDo } from "#core/actor";
import type { Change } from "#core/audit";
import { howMany } from "#core/format";
import type { AllowedSpecialPurpose } from "#core/ip/special-purpose";
import type { CrawlScope } from "../frontier/frontier.ts";
import type { AskedAction, Outcome, WebPart } from "../web/actions.ts";
import type { BodyOf } from "../web/api-operation.ts";
import { submissionBody, submitBody } from "./page.ts";
import { countWords, type Submission, type SubmissionStore, submitUrls, sumOf } from "./submission.ts";
import { submissionsApi } from "./submissions-api.ts";

export interface SubmissionPorts {
  readonly store: SubmissionStore;
  /** In force now. */
  readonly scope: () => CrawlScope;
  readonly allowSpecialPurpose: AllowedSpecialPurpose;
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
      view: async ({ param, query, now }) => {
        const receipt = await receiptOf(store, { number: param("number"), after: query("after"), now });
        if (receipt === null) return null;
        const { submission } = receipt;
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

async function submit(
  { body, actor, now }: AskedAction<BodyOf<typeof submissionsApi.submitUrls>>,
  { store, scope, allowSpecialPurpose }: SubmissionPorts,
): Promise<Outcome> {
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
