/**
 * Bot gates: services in front of a site that answer a crawler with a challenge in place of the page. A crawler reports one
 * as a failure with its `challenge`, so that a coordinator of an earlier release keeps the page and tries again later.
 */
import { z } from "zod";

/** Part of a failure: which service asks for a proof, and what it withholds. `status` is that of its answer. */
export const challenge = z.object({
  provider: z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/),
  of: z.enum(["page", "robots"]),
  status: z.int().min(100).max(999),
});

export type Challenge = z.infer<typeof challenge>;

export const unknownGate = "unknown";

const names: Readonly<Record<string, string>> = {
  akamai: "Akamai",
  "alibaba-cloud": "Alibaba Cloud",
  anubis: "Anubis",
  "aws-waf": "AWS WAF",
  basedflare: "Basedflare",
  bitninja: "BitNinja",
  bunny: "bunny.net",
  cloudflare: "Cloudflare",
  datadome: "DataDome",
  "ddos-guard": "DDoS-Guard",
  edgeone: "Tencent EdgeOne",
  f5: "F5",
  fastly: "Fastly",
  "go-away": "go-away",
  human: "HUMAN (PerimeterX)",
  imperva: "Imperva",
  imunify360: "Imunify360",
  kasada: "Kasada",
  qrator: "Qrator",
  radware: "Radware",
  reblaze: "Reblaze",
  siteground: "SiteGround",
  stackpath: "StackPath",
  sucuri: "Sucuri",
  testcookie: "testcookie",
  vercel: "Vercel",
};

/** Such as "Cloudflare" or "of an unknown provider". A provider that only newer crawlers know is named by its code. */
export const gateName = (provider: string): string =>
  provider === unknownGate ? "of an unknown provider" : (names[provider] ?? provider);

/** For metric labels, which must be few: any other provider becomes unknown. */
export const knownGate = (provider: string): string => (provider in names ? provider : unknownGate);

export const gateWords = (provider: string): string =>
  provider === unknownGate ? "a bot gate of an unknown provider" : `a bot gate (${gateName(provider)})`;

/** Such as "Cloudflare: no page without a proof that a person asks (status 403)". */
export function challengeWords({ provider, of, status }: Challenge): string {
  const what = of === "robots" ? "robots.txt" : "the page";
  return `${gateWords(provider)} stands before ${what} and asks for a proof that a person visits (status ${status})`;
}

/** Phrases of gates. Pages about gates contain them too, so they count only in very short texts. */
const sayings: readonly RegExp[] = [
  /\b(?:checking|verifying|confirming) (?:your (?:browser|connection)|(?:that|if|whether) (?:you|the site connection is secure))/,
  new RegExp(
    "\\b(?:verify|verifying|confirm|prove|making sure|make sure|checking|check)(?: that| if| whether)? (?:you(?:'re| are)|it(?:'s| is) you|the visitor is) " +
      "(?:really )?(?:an? )?(?:human|(?:real )?person|not (?:an? )?(?:ro)?bot)",
  ),
  /\bare you (?:an? )?(?:human|robot|bot)\b/,
  /\b(?:i am|i'm) not a robot\b/,
  /\benable (?:javascript|js|cookies) and (?:cookies to continue|disable any ad blocker)/,
  /\b(?:human|bot|browser) verification\b|\bverification required\b|\bsecurity (?:checkpoint|verification)\b|\bperforming (?:a )?security check/,
  /\bclient challenge\b|\bmade us think (?:that )?you (?:are|were) a bot\b/,
  /\b(?:überprüfen|prüfen|überprüfung)[^.]{0,30}\b(?:browsers?|mensch)\b|\bdass sie (?:ein mensch|kein (?:ro)?bot) sind\b/,
  /vérifi\S{1,9} (?:de |que )?(?:votre navigateur|vous êtes (?:un )?(?:être )?humain|vous n'êtes pas un robot)/,
  /(?:verific|comprob)\S{1,5} (?:de )?(?:tu navegador|su navegador|(?:que|si) (?:eres|es|no eres|no es)(?: usted)? (?:un )?(?:ser )?(?:humano|robot))/,
  /verific\S{1,5} (?:che|se) (?:tu |lei )?(?:sia |sei |è )?(?:un )?(?:essere )?uman/,
  /verific\S{1,5} (?:que|se) você (?:é|não é) (?:um )?(?:ser )?(?:humano|robô)/,
  /controleren of (?:u|je) (?:een )?mens|bevestig dat (?:u|je) (?:een mens|geen robot)/,
  /(?:проверка|проверяем)(?: вашего| ваш)? браузер|(?:вы не робот|вы человек|не робот$)|підтвердьте, що ви (?:не робот|людина)/,
  /(?:sprawdzamy|potwierdź), (?:czy|że) (?:nie )?jesteś (?:człowiekiem|robotem)|insan olduğunuzu doğrula|robot olmadığınızı/,
  /人間であることを(?:確認|証明)|ロボットではない/,
  /人机验证|安全验证|确认(?:您|你)(?:是真人|不是机器人)|正在(?:检查|检测|验证)(?:您|你)?的?浏览器/,
  /사람인지 확인|로봇이 아닙니다/,
];

const mostCharacters = 2000;

/** Whether a text asks its reader to prove to be human. */
export function asksForProof(text: string): boolean {
  const plain = text.slice(0, mostCharacters).toLowerCase().replaceAll("’", "'").replace(/\s+/g, " ");
  return sayings.some((saying) => saying.test(plain));
}
