/** A loopback site with an optional bot gate; its answers are shortened versions of real ones. */
import type { ServerResponse } from "node:http";
import { html, type Origin, startOrigin } from "./origin.ts";

interface GateAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

const page = (head: string, body: string) =>
  `<!doctype html><html><head>${head}</head><body>${body}</body></html>`;
const noindex = '<meta name="robots" content="noindex,nofollow">';

const why =
  "The administrator of this website protects it from being read by machines at a pace that takes it down. ";

/** Keyed by the provider to be recognised. */
export const challenges = {
  cloudflare: {
    ...{ status: 403, headers: { "cf-mitigated": "challenge" } },
    body: page(
      `<title>Just a moment...</title>${noindex}`,
      "<script>window._cf_chl_opt={cType:'managed'}</script>",
    ),
  },
  "cloudflare, without its header": {
    status: 403,
    body: page("<title>Just a moment...</title>", "<script>window._cf_chl_opt={cType:'managed'}</script>"),
  },
  "cloudflare, as it was with 503": {
    status: 503,
    body: page(
      `<title>Just a moment...</title>${noindex}`,
      '<h1>Checking your browser before accessing ferry.example.</h1><form id="challenge-form"><input type="hidden" name="jschl_vc" value="1"></form>',
    ),
  },
  "aws-waf": { status: 202, headers: { "x-amzn-waf-action": "challenge" }, body: "" },
  "aws-waf, by its script": {
    status: 202,
    body: page(
      "",
      '<script>window.gokuProps = {"key":"A"};</script><script src="https://a.edge.sdk.awswaf.com/1/2/challenge.js"></script>',
    ),
  },
  akamai: {
    status: 200,
    body: page(
      `<meta http-equiv="refresh" content="5; URL='/p1?bm-verify=AAQAA'">`,
      "<script>triggerInterstitialChallenge()</script>",
    ),
  },
  anubis: {
    status: 200,
    body: page(
      `<title>Making sure you're not a bot!</title>${noindex}<script id="anubis_version" type="application/json">"v1.25.0"</script>`,
      `<h1>Making sure you're not a bot!</h1><p>Loading...</p><details><summary>Why am I seeing this?</summary><p>${why.repeat(6)}
</p></details><p>Protected by <a href="https://anubis.example/">Anubis</a> from <a href="https://techaro.example">Techaro</a>.</p>`,
    ),
  },
  datadome: {
    status: 403,
    body: page(
      "<title>ferry.example</title>",
      `<p>Please enable JS and disable any ad blocker</p><script>var dd={'rt':'c','host':'geo.captcha-delivery.com'}</script>`,
    ),
  },
  "ddos-guard": {
    status: 403,
    body: page(
      "<title>DDoS-Guard</title>",
      '<script src="/.well-known/ddos-guard/js-challenge/index.js"></script>',
    ),
  },
  fastly: {
    status: 200,
    body: page(
      "<title>Client Challenge</title>",
      '<script src="/_fs-ch-1T1wmsGaOgGaSxcX/script.js"></script>',
    ),
  },
  human: {
    status: 403,
    body: page(
      '<title>Access to this page has been denied</title><meta name="description" content="px-captcha">',
      "<script>window._pxAppId='PXabc'</script>",
    ),
  },
  imperva: {
    status: 200,
    body: page(
      '<META NAME="ROBOTS" CONTENT="NOINDEX, NOFOLLOW">',
      '<iframe src="/_Incapsula_Resource?SWUDNSAI=31">Request unsuccessful. Incapsula incident ID: 1-2</iframe>',
    ),
  },
  kasada: {
    status: 429,
    headers: { "x-kpsdk-ct": "0" },
    body: page("", '<script>window.KPSDK={};KPSDK.now=1</script><script src="/1/2/ips.js?a=1"></script>'),
  },
  sucuri: {
    status: 200,
    body: page(
      "<title>You are being redirected...</title>",
      "<script>var s={},u,c;sucuri_cloudproxy_js='';</script>",
    ),
  },
  vercel: {
    status: 429,
    headers: { "x-vercel-mitigated": "challenge" },
    body: page("<title>Vercel Security Checkpoint</title>", ""),
  },
  radware: { status: 302, headers: { location: "https://validate.perfdrive.com/1/captcha?ssa=1" }, body: "" },
  "unknown, with 200 and no other mark than its words": {
    status: 200,
    body: page(
      "<title>Checking that you are a person</title>",
      "<h1>Checking that you are a person</h1><p>One moment, please.</p><noscript>Scripts are needed here.</noscript>",
    ),
  },
  "unknown, in Japanese": {
    status: 403,
    body: page("<title>確認</title>", "<p>あなたが人間であることを確認しています。</p><script>go()</script>"),
  },
  "unknown, which sets a cookie and loads the page again": {
    status: 200,
    body: page("", '<script>document.cookie="pass="+work(7);location.reload();</script>'),
  },
} as const satisfies Readonly<Record<string, GateAnswer>>;

/** Answers every path including robots.txt: no words, no mark, a new token each time. */
export const shell = (): string =>
  page("<title>ferry.example</title>", `<script>!function(){var t="${Math.random()}";start(t)}()</script>`);

const words = (n: string) =>
  `The ferry number ${n} leaves the harbour at noon and crosses the bay with passengers, cargo and mail. `.repeat(
    12,
  );

export const ferryPage = (n: string): string =>
  `<!doctype html><html lang="en"><title>Harbour page ${n}</title><h1>Harbour ${n}</h1><p>${words(n)}</p>${[
    1, 2, 3,
  ]
    .map((other) => `<a href="/p${other}">page ${other}</a>`)
    .join(" ")}</html>`;

export interface GatedSite extends Origin {
  /** Null leaves the site open. Otherwise returns the answer for a path; null for the site's own. */
  gate: ((path: string) => GateAnswer | null) | null;
}

/** Has pages `/p1`, `/p2` and so on; robots.txt forbids `/secret/`. */
export async function startGatedSite(): Promise<GatedSite> {
  const site = await startOrigin(({ url = "/" }, response) => {
    const answer = gated.gate?.(url) ?? null;
    if (answer !== null) send(response, answer);
    else if (url === "/robots.txt") response.end("User-agent: *\nDisallow: /secret/\n");
    else if (/^\/(?:p\d+)?$/.test(url)) html(response, ferryPage(url.slice(2)), { etag: `"${url}"` });
    else response.writeHead(404, { "content-type": "text/html" }).end("<h1>Not found</h1>");
  });
  const gated: GatedSite = Object.assign(site, { gate: null });
  return gated;
}

function send(response: ServerResponse, { status, headers = {}, body }: GateAnswer): void {
  response
    .writeHead(status, { "content-type": "text/html; charset=utf-8", etag: '"gate"', ...headers })
    .end(body);
}
