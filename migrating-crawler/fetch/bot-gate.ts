/**
 * Distinguishes a bot gate's challenge from the site's own answer: by headers that providers document, by content found only
 * in their interstitials, and by shape for unknown providers. A page with more words and links than an interstitial is never
 * considered a gate, because forms with a captcha, articles about gates and short errors belong to the site. Nothing here
 * solves or evades a challenge.
 */
import { asksForProof, type Challenge, unknownGate } from "#protocol/bot-gate";
import { challenged, type Failure } from "../core/failure.ts";
import { mediaType } from "../extract/document-kind.ts";
import type { HtmlTag } from "../extract/html-tags.ts";
import { countWords } from "../extract/read-page.ts";
import { decodeText, HtmlScanner, type HtmlSink } from "../extract/scan-html.ts";
import { mentionsNotFound, saysNotFound } from "../traps/site-memory.ts";
import type { AnswerHeaders } from "./exchange.ts";

interface Answer {
  readonly status: number;
  readonly headers: AnswerHeaders;
}

/** Limit for interstitials with inline scripts. Most have 2 to 40 KB. */
export const mostGateBytes: number = 256 * 1024;

const mostUnmarkedBytes = 48 * 1024;

/** Maximum size of an interstitial. `marked` is larger because Anubis explains itself at length. */
const marked = { words: 300, links: 8 };
const unmarked = { words: 100, links: 3 };
/** A page that does nothing but run a script has fewer words. */
const mostShellWords = 20;

export function gateFailure(provider: string, of: Challenge["of"], status: number): Failure {
  return challenged({ provider, of, status });
}

export function gateInHeaders({ status, headers }: Answer): string | null {
  const value = (name: string) => String(headers[name] ?? "").toLowerCase();
  if (value("cf-mitigated") === "challenge") return "cloudflare";
  if (/^(?:challenge|captcha)$/.test(value("x-amzn-waf-action"))) return "aws-waf";
  if (value("x-vercel-mitigated") === "challenge") return "vercel";
  if (value("sg-captcha") === "challenge") return "siteground";
  if (status === 429 && headers["x-kpsdk-ct"] !== undefined) return "kasada";
  return gateInLocation(value("location"));
}

const gateLocations: readonly (readonly [provider: string, location: RegExp])[] = [
  ["radware", /^https?:\/\/(?:validate|captcha)\.perfdrive\.com\//],
  ["datadome", /^https?:\/\/geo\.captcha-delivery\.com\//],
  ["cloudflare", /\/cdn-cgi\/challenge-platform\//],
  ["anubis", /\/\.within\.website\//],
  ["siteground", /\/\.well-known\/sgcaptcha\//],
  ["ddos-guard", /\/\.well-known\/ddos-guard\//],
  ["akamai", /\/_sec\/cp_challenge\/|[?&]bm-verify=/],
  ["fastly", /\/_fs-ch-[a-z0-9]+\//],
  ["basedflare", /\/\.basedflare\//],
];

function gateInLocation(location: string): string | null {
  return gateLocations.find(([, pattern]) => pattern.test(location))?.[0] ?? null;
}

/** Whether an error's body must be read, because some gates use the status of an ordinary refusal. */
export function mayBeGate({ status, headers }: Answer): boolean {
  if (status < 400 || notAsked.has(status)) return false;
  const type = mediaType(String([headers["content-type"] ?? ""].flat()[0]));
  return type === "" || type === "text/html" || type === "application/xhtml+xml";
}

const notAsked: ReadonlySet<number> = new Set([402, 404, 407, 410, 451]);

/**
 * Content found only in interstitials, outside their text. `soft` marks also occur on script-drawn pages of the provider's
 * customers, which can be recognised by an element to draw into.
 */
const gateMarks: readonly (readonly [provider: string, mark: RegExp, soft?: "soft"])[] = [
  [
    "cloudflare",
    /_cf_chl_opt|cf-browser-verification|jschl[-_]vc|\/cdn-cgi\/challenge-platform\/\S{0,20}\/orchestrate\//,
  ],
  ["anubis", /id=["']?anubis_(?:version|challenge|base_prefix)|\/\.within\.website\/x\//],
  ["go-away", /\/\.well-known\/\.git\.gammaspectra\.live\//],
  ["aws-waf", /gokuProps|\.awswaf\.com\/\S{1,200}\/(?:challenge|captcha)\.js/, "soft"],
  [
    "akamai",
    /\/_sec\/(?:cp_challenge\/|verify\?provider)|[?&]bm-verify=|triggerInterstitialChallenge|sec-if-cpt-|scf-akamai-/,
  ],
  ["datadome", /\b(?:ct|geo)\.captcha-delivery\.com\b/],
  [
    "imperva",
    /_Incapsula_Resource\?(?!SWJIYLWA)|reeseSkipExpirationCheck|interstitial-inprogress|distil_ident_block/,
  ],
  ["imperva", /noindex[^>]{0,40}>\s*<script[^>]{0,40}_Incapsula_Resource\?/i],
  ["human", /["'/]px-captcha\b|_pxCaptcha|\bcaptcha\.px-c(?:dn|loud)\.net\b|\/captcha\/PX\w{6,12}\//, "soft"],
  ["kasada", /KPSDK\s*=\s*\{\}|\/ips\.js\?/, "soft"],
  ["vercel", /\/\.well-known\/vercel\/security\//],
  ["sucuri", /sucuri_cloudproxy_js/],
  ["ddos-guard", /\/\.well-known\/ddos-guard\/|ddg-captcha|ddos-guard\/js-challenge/],
  ["fastly", /\/_fs-ch-\w{6,40}\//],
  ["radware", /\b(?:validate|captcha)\.perfdrive\.com\b/],
  ["f5", /window\["bobcmn"\]/, "soft"],
  ["reblaze", /window\.rbzns\s*=\s*\{/],
  ["siteground", /\/\.well-known\/sgcaptcha\//],
  ["imunify360", /\bwsidchk\b/],
  ["qrator", /\/__qrator\/\S{0,30}qauth/],
  ["testcookie", /slowAES\.decrypt\(/],
  ["alibaba-cloud", /acw_sc__v[23]|_waf_bd8ce2ce37|\/punish\?x5secdata|aliyun_waf_/],
  ["edgeone", /EO_Bot_Ssid|__tst_status/],
  ["bunny", /\/\.bunny-shield\//],
  ["basedflare", /\/\.basedflare\//],
  ["stackpath", /\/sbbi\/\?sbbpg=/],
];

const gateTexts: readonly (readonly [provider: string, text: RegExp])[] = [
  ["imperva", /\bIncapsula incident ID\b|^Pardon Our Interruption\b/i],
  ["vercel", /^Vercel Security Checkpoint\b/],
  ["f5", /Please enable JavaScript to view the page content\.\s*Your support ID is/],
  ["bitninja", /\bWaiting for the redirectiron\b/],
  ["imunify360", /\bImunify360 bot-protection\b/],
];

export interface GateFinding {
  /** Null if this body appears to be the site's own. */
  readonly provider: string | null;
  /**
   * What script-only pages of one kind have in common: pages without signs of an application, or with noindex and hardly any
   * text. Null if the page has content of its own.
   */
  readonly shell: string | null;
  /** True if the page is empty without scripts, because an application draws it or because it says so. */
  readonly needsScripts: boolean;
}

const siteOwn: GateFinding = { provider: null, shell: null, needsScripts: false };
const gateOf = (provider: string): GateFinding => ({ ...siteOwn, provider });

/** `bytes` must be decoded and complete. */
export function gateInBody(bytes: Buffer, answer: Answer, of: Challenge["of"] = "page"): GateFinding {
  if (bytes.length > mostGateBytes) return siteOwn;
  // No site answers a page request with "accepted for later".
  if (answer.status === 202 && bytes.length === 0) return gateOf(unknownGate);
  const page = isMarkup(bytes) ? readShape(bytes.toString("utf8")) : null;
  if (page === null) return siteOwn;
  const provider = providerOf(page);
  if (provider !== null) return gateOf(provider);
  const own = { ...siteOwn, needsScripts: isDrawnByScripts(page) };
  if (bytes.length > mostUnmarkedBytes || !isWithin(page, unmarked) || page.isApplication || page.hasEntries)
    return own;
  if (asksByShape(page, answer, of)) return gateOf(unknownGate);
  const shell = shellOf(page, answer);
  // A script in place of robots.txt is a gate, or belongs to a site whose pages have no text for crawlers anyway.
  const isInstead =
    of === "robots" && (answer.status === 202 || (shell !== null && page.words <= mostShellWords));
  return isInstead ? gateOf(unknownGate) : { ...own, shell };
}

/** The page shows nothing, and has an element to draw into or a message for visitors without scripts. */
const isDrawnByScripts = (page: Shape) =>
  page.scripts > 0 &&
  page.words <= mostShellWords &&
  page.links <= 2 &&
  !page.hasMedia &&
  !page.hasEntries &&
  (page.hasRoot || /java\s?script|\bscripts?\b|\bJS\b/i.test(page.hidden));

/** The content type is ignored, because robots.txt is requested as text. */
const isMarkup = (bytes: Buffer) =>
  /<(?:html|head|body|title|script|meta|noscript|form|iframe|h1)\b/i.test(bytes.toString("latin1", 0, 4096));

function providerOf(page: Shape): string | null {
  if (!isWithin(page, marked)) return null;
  const said = `${page.title}\n${page.text}\n${page.hidden}`;
  const byText = gateTexts.find(([, text]) => text.test(page.title) || text.test(said));
  if (byText !== undefined) return byText[0];
  const byMark = gateMarks.find(
    ([, mark, soft]) => !(soft && page.isApplication) && mark.test(page.machinery),
  );
  return byMark?.[0] ?? null;
}

/** Whether the page asks for a proof without being an ordinary page meant to be found, or sets a cookie and reloads itself. */
function asksByShape(page: Shape, { status, headers }: Answer, of: Challenge["of"]): boolean {
  const runs = page.scripts > 0 || page.refreshes || page.hidden !== "";
  if (!runs) return false;
  const again = /document\.cookie\s*=/.test(page.machinery) && /\blocation\.reload\s*\(/.test(page.machinery);
  if (again && page.words <= mostShellWords && page.links === 0) return true;
  if (asksForProof(page.title) || asksForProof(page.heading)) return true;
  const isUnfound =
    of === "robots" || status !== 200 || forbidsIndex(page, headers) || page.refreshes || again;
  return isUnfound && asksForProof(`${page.text} ${page.hidden}`);
}

const forbidsIndex = ({ machinery }: Shape, headers: AnswerHeaders) =>
  /<meta\b[^>]{0,200}\b(?:noindex|none)\b/i.test(machinery) ||
  /\bnoindex\b/i.test(String(headers["x-robots-tag"] ?? ""));

function shellOf(page: Shape, { headers }: Answer): string | null {
  if (page.scripts === 0 || page.links > 0) return null;
  if ([page.title, page.heading].some((text) => saysNotFound(text) !== null) || mentionsNotFound(page.text))
    return null;
  if (page.words > mostShellWords && !forbidsIndex(page, headers)) return null;
  // Masks numbers and names that change with each request.
  return `${page.title}\n${page.text}\n${page.scripts}`.replace(/\S*\d\S*|\S{25,}/g, "#").slice(0, 1000);
}

const isWithin = ({ words, links }: Shape, most: typeof marked) => words <= most.words && links <= most.links;

// Summarises a page as a visitor sees it (text, links, inputs) and the machinery behind it.

/** Returns null when the page has more words or links than any interstitial. */
function readShape(html: string): Shape | null {
  const shape = new Shape(html);
  const scanner = new HtmlScanner(html, shape);
  shape.tag = scanner.tag;
  for (let end = pieceCharacters; !scanner.isDone && !shape.isMore; end += pieceCharacters)
    scanner.scanTo(end);
  if (shape.isMore) return null;
  shape.finish();
  return shape;
}

/** Most pages exceed an interstitial within their first few kilobytes. */
const pieceCharacters = 4 * 1024;
const mostText = 20_000;
const unseen = new Set("script style template iframe noembed noframes svg math".split(" "));
const media = new Set("img picture video audio iframe object embed frame".split(" "));
/** Elements that common frameworks draw into, and marks that only applications have. */
const rootIds =
  /^(?:root|app|__next|__nuxt|___gatsby|svelte|react-root|react-app|application|main-app|q-app|elm|ember-app)$/i;
const bundleNames =
  /(?:^|\/)(?:main|app|bundle|index|runtime|vendors?|polyfills|chunk|flutter\w*)[.~-][\w.~-]*\.m?js\b/i;

class Shape implements HtmlSink {
  title = "";
  heading = "";
  text = "";
  words = 0;
  hidden = "";
  links = 0;
  scripts = 0;
  refreshes = false;
  hasEntries = false;
  hasMedia = false;
  /** Whether the page has an element for an application to draw into, or another sign of an application. */
  hasRoot = false;
  isApplication = false;
  /** Everything except the text: tags, scripts and styles. */
  machinery = "";
  readonly isForeign = false;
  tag!: HtmlScanner["tag"];
  readonly #html: string;
  #open = "";
  #unseenDepth = 0;
  #noscripts = 0;
  #headings = 0;
  #machineryFrom = 0;

  constructor(html: string) {
    this.#html = html;
  }

  get isMore(): boolean {
    return this.words > marked.words || this.links > marked.links;
  }

  finish(): void {
    for (const said of ["title", "heading", "text", "hidden"] as const)
      this[said] = this[said].replace(/\s+/g, " ").trim();
    this.isApplication ||= this.hasRoot;
    this.machinery += this.#html.slice(this.#machineryFrom);
  }

  openTag({ name, isVoid, content, headingLevel }: HtmlTag, isSelfClosing: boolean): void {
    this.#open = content === "markup" ? "" : name;
    const says = (attribute: string) => this.tag.attribute(attribute) ?? "";
    if (rootIds.test(says("id")) || /^app-root$/.test(name)) this.hasRoot = true;
    if (media.has(name) && this.#noscripts === 0) this.hasMedia = true;
    if (content === "markup" && !isVoid && !isSelfClosing && unseen.has(name)) this.#unseenDepth++;
    if (name === "noscript") this.#noscripts++;
    if (headingLevel > 0 && this.heading === "") this.#headings++;
    switch (name) {
      case "a":
        if (/^(?!#|javascript:|mailto:|tel:)./i.test(says("href").trim())) this.links++;
        return;
      case "script":
        this.scripts++;
        if (/\bflutter\w*\.js\b/.test(says("src"))) this.hasRoot = true;
        if (bundleNames.test(says("src")) && !says("src").includes("/.")) this.isApplication = true;
        return;
      case "link":
        if (/^(?:manifest|modulepreload)$/i.test(says("rel"))) this.isApplication = true;
        return;
      case "meta":
        if (/^refresh$/i.test(says("http-equiv"))) this.refreshes = true;
        return;
      case "textarea":
      case "select":
        this.hasEntries ||=
          !/hidden|none/.test(says("style")) && !/recaptcha|turnstile|h-captcha/.test(says("name"));
        return;
      case "input":
        if (/^(?:password|email|search|tel)$/i.test(says("type"))) this.hasEntries = true;
    }
  }

  closeTag({ name, headingLevel }: HtmlTag): void {
    this.#open = "";
    if (unseen.has(name)) this.#unseenDepth = Math.max(0, this.#unseenDepth - 1);
    if (name === "noscript") this.#noscripts = Math.max(0, this.#noscripts - 1);
    if (headingLevel > 0) this.#headings = 0;
  }

  takeText(from: number, to: number): void {
    if (this.#unseenDepth > 0 || unseen.has(this.#open)) return;
    this.machinery += this.#html.slice(this.#machineryFrom, from);
    this.#machineryFrom = to;
    const text = decodeText(this.#html.slice(from, Math.min(to, from + mostText)));
    if (this.#open === "title") this.title = text.slice(0, 300);
    else if (this.#noscripts > 0) this.hidden = `${this.hidden} ${text}`.slice(0, mostText);
    else {
      this.words += countWords(text, 0, text.length);
      if (this.text.length < mostText) this.text += ` ${text}`;
      if (this.#headings > 0) this.heading = `${this.heading} ${text}`.slice(0, 300);
    }
  }
}
