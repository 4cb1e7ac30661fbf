/** The pages of submitting URLs: the form, the latest receipts, and one receipt with what has become of its URLs. */
import { mayDo } from "#core/actor";
import type { CrawlScope } from "../frontier/frontier.ts";
import { buttonForm, column, dataTable, empty, numberColumn } from "../web/components.ts";
import { askAbout, countText, crawlerLink, instant, sentence } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { countWords, type FollowedUrl, notFollowed, type Submission, sumOf } from "./submission.ts";
import { submissionBounds } from "./submissions-api.ts";

interface SubmitPage {
  readonly submissions: readonly Submission[];
  readonly viewer: PageViewer;
  /** In force now. */
  readonly scope: CrawlScope;
  /** What was typed, and what is wrong with it. */
  readonly typed?: { readonly values: Readonly<Record<string, string>>; readonly fault: string };
}

export function submitBody({ submissions, viewer, scope, typed }: SubmitPage): Html {
  const { urls = "", deed = "add" } = typed?.values ?? {};
  const chosen = (one: string) => (one === deed ? html` checked` : nothing);
  return html`<h1>Submit URLs</h1>
<p class="lead">Each URL is answered at once; its receipt tells which crawler fetches it, about when, and with what result.
The URL of a sitemap or feed adds the URLs of its own host that it lists.</p>
${typed ? html`<p class="fault" role="alert">${typed.fault}</p>` : nothing}
<form class="form submit-form" method="post" action="/submit">${formToken(viewer)}
<div><label for="submit-urls">URLs, one per line, ${countText(submissionBounds.urls)} at most</label><textarea id="submit-urls"
 name="urls" rows="6" required spellcheck="false" placeholder="https://www.example.org/">${urls}</textarea></div>
<fieldset><legend>Action</legend>
<label class="choice"><input type="radio" name="deed" value="add"${chosen("add")}> Crawl them; known URLs keep their schedule</label>
<label class="choice"><input type="radio" name="deed" value="recrawl"${chosen("recrawl")}> Fetch known URLs again now,
 at the usual politeness</label></fieldset>
<button>Submit</button></form>
<p class="small">Not followed: ${notFollowed(scope).join("; ")}.</p>
<p class="small">Longer lists, on the coordinator's machine: <code>nearcrawl urls add FILE</code>.
Programs: <code>POST /api/urls</code> with a token of scope url-write.</p>
${typed ? nothing : latest(submissions)}`;
}

const deedWords = { add: "add", recrawl: "fetch again" } as const;

function latest(submissions: readonly Submission[]): Html {
  if (submissions.length === 0) return empty("No submissions yet.", "Receipts are listed here for 90 days.");
  return html`<section><h2>Latest receipts</h2>${dataTable<Submission>(
    "Latest receipts",
    [
      numberColumn("No.", ({ submissionId: id }) => html`<a href="/submissions/${id}">${id}</a>`),
      column("When", ({ submittedAt }) => instant(submittedAt), "nowrap"),
      column("By", ({ submittedBy }) => submittedBy),
      column("What", ({ deed }) => deedWords[deed]),
      numberColumn("URLs", (one) => countText(sumOf(one))),
      column("Answers", countWords),
      numberColumn("Fetched since", fetchedText),
    ],
    submissions,
  )}</section>`;
}

const fetchedText = ({ fetched }: Submission) => (fetched === null ? "not counted" : countText(fetched));

interface ReceiptPage {
  readonly submission: Submission;
  readonly urls: readonly FollowedUrl[];
  readonly next: number | null;
  readonly mayRead: boolean;
}

export function submissionBody({ submission, urls, next, mayRead }: ReceiptPage): Html {
  const { submissionId, submittedAt, submittedBy, deed } = submission;
  const path = `/submissions/${submissionId}`;
  return html`<p class="crumbs"><a href="/submit">Submit URLs</a></p>
<h1>Submission ${submissionId}</h1>
<p class="lead">${deed === "add" ? "Submitted" : "Submitted for refetching"} by ${submittedBy}, ${instant(submittedAt)}:
${countWords(submission)}. Fetched since: ${fetchedText(submission)}.</p>
<p class="small">This page is kept for 90 days. Reload it to see the current state.${
    mayRead
      ? html` How far their hosts are crawled, and what limited them: <a href="${pathWith("/coverage", { submission: String(submissionId) })}">coverage</a>.`
      : nothing
  }</p>
${urls.length === 0 ? empty("No more URLs.", "") : urlTable(urls, mayRead)}
${
  next === null
    ? nothing
    : html`<nav class="pager" aria-label="Parts of the list"><a rel="next" href="${pathWith(path, { after: next })}">Next →</a></nav>`
}`;
}

const urlTable = (urls: readonly FollowedUrl[], mayRead: boolean): Html =>
  dataTable<FollowedUrl>(
    "URLs of this submission",
    [
      numberColumn("Line", ({ place }) => countText(place)),
      column(
        "URL",
        ({ url, answer }) =>
          mayRead && answer !== "refused" ? askAbout(url) : html`<span class="mono">${url}</span>`,
        "break",
      ),
      column("Answer", ({ answer }) => html`<span class="kind">${answer}</span>`),
      column("Crawler", ({ crawler }) => (crawler === null ? "–" : mayRead ? crawlerLink(crawler) : crawler)),
      column("Now", ({ words }) => sentence(words), "wide break"),
    ],
    urls,
  );

/** For whoever may; the receipt opens. */
const submitForm = (deed: Submission["deed"], label: string) => (viewer: PageViewer, url: string) => {
  if (!mayDo(viewer.actor, "url-write") || viewer.formToken === null) return nothing;
  const fields = html`<input type="hidden" name="urls" value="${url}"><input type="hidden" name="deed" value="${deed}">`;
  return buttonForm(viewer, { path: "/submit", label }, fields);
};

export const fetchAgainForm = submitForm("recrawl", "Fetch again now");

/** Of a URL that the frontier does not hold. */
export const handInForm = submitForm("add", "Crawl it");

export function submitLink({ actor }: PageViewer): Html {
  if (!mayDo(actor, "url-write")) return nothing;
  return html`<p class="small">Something is missing? <a href="/submit">Submit URLs</a>.</p>`;
}
