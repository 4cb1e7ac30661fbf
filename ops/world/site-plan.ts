/**
 * What a site consists of, from its host name alone: which paths there are and what each answers, who may
 * crawl it, where its links go. Ordinary pages form a tree below the front page (each links to at most four
 * children), so that all of them are reached from `/`. On top come, on some sites, a redirect, a duplicate, a
 * page that asks not to be indexed, a part that robots.txt closes, and links that lead nowhere.
 */
import type { World, WorldSite } from "./model.ts";
import { headline } from "./page-html.ts";
import type { Language } from "./places.ts";
import { hashText, SeededRandom } from "./seeded-random.ts";

export interface SitePlan {
  readonly site: WorldSite;
  readonly name: string;
  /** Null when there is no robots.txt. */
  readonly robots: string | null;
  readonly hasSitemap: boolean;
  /** False when pages do not state their language. */
  readonly saysLanguage: boolean;
  /** The ordinary pages, the front page first. */
  readonly pages: readonly PlannedPage[];
  readonly byPath: ReadonlyMap<string, SiteAnswer>;
}

export type SiteAnswer =
  | { readonly type: "page"; readonly page: PlannedPage }
  | { readonly type: "redirect"; readonly to: string; readonly status: 301 | 302 };

export interface PlannedPage {
  readonly path: string;
  readonly title: string;
  readonly language: Language;
  /** The seed of the page's text. Pages with equal seed and title have equal bytes. */
  readonly seed: number;
  /** Bytes of text, roughly. */
  readonly textBytes: number;
  readonly noindex: boolean;
  readonly links: readonly PageLink[];
}

export interface PageLink {
  readonly href: string;
  readonly text: string;
  readonly nofollow: boolean;
}

const childrenPerPage = 4;

export function planSite(world: World, site: WorldSite): SitePlan {
  const random = new SeededRandom(hashText(world.seed, site.host));
  const name = siteName(site.host);
  const paths = pathsOf(site, random);
  const titles = paths.map((_, index) => (index === 0 ? name : headline(site.language, random)));
  const extras = extrasOf(random);
  const pages = paths.map((path, index): PlannedPage => {
    const inside = childrenOf(index, paths.length).map((child) =>
      link(paths[child] ?? "/", titles[child] ?? ""),
    );
    const home = index === 0 ? extras.links : [link("/", name)];
    return {
      path,
      title: titles[index] ?? name,
      language: site.language,
      seed: hashText(world.seed ^ index, site.host),
      textBytes: Math.round(Math.min(20_000, Math.max(800, 3_500 * Math.exp(0.7 * random.normal())))),
      noindex: false,
      links: [...inside, ...home, ...linksAbroad(world, site, random)],
    };
  });
  return {
    site,
    name,
    ...robotsOf(site, random),
    saysLanguage: random.chance(0.9),
    pages,
    byPath: answersOf(pages, extras, random),
  };
}

/** `Silver Harbour` from `silver-harbour-0042.example`. */
function siteName(host: string): string {
  const words = (host.split(".")[0] ?? host).split("-").filter((word) => /^[a-z]/.test(word));
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(" ");
}

const sections = ["news", "about", "archive", "guide", "events", "people", "stories", "work"];

function pathsOf(site: WorldSite, random: SeededRandom): string[] {
  return Array.from({ length: site.pages }, (_, index) => {
    if (index === 0) return "/";
    const ending = random.chance(0.4) ? ".html" : random.chance(0.3) ? "/" : "";
    return `/${random.pick(sections)}/${index}${ending}`;
  });
}

function childrenOf(index: number, count: number): number[] {
  const first = index * childrenPerPage + 1;
  return Array.from({ length: childrenPerPage }, (_, position) => first + position).filter(
    (child) => child < count,
  );
}

interface Extras {
  readonly redirect: boolean;
  readonly duplicate: boolean;
  readonly noindex: boolean;
  readonly links: readonly PageLink[];
}

/** The front page links to the extras. */
function extrasOf(random: SeededRandom): Extras {
  const redirect = random.chance(0.3);
  const duplicate = random.chance(0.15);
  const noindex = random.chance(0.15);
  const links = [
    ...(redirect ? [link("/start", "Start")] : []),
    ...(duplicate ? [link("/print/1", "Print")] : []),
    ...(noindex ? [link("/login", "Login")] : []),
    ...(random.chance(0.5) ? [link("/private/list", "Members")] : []),
    ...(random.chance(0.2) ? [link("/moved/away.html", "Old page")] : []),
  ];
  return { redirect, duplicate, noindex, links };
}

function answersOf(
  pages: readonly PlannedPage[],
  extras: Extras,
  random: SeededRandom,
): ReadonlyMap<string, SiteAnswer> {
  const answers = new Map<string, SiteAnswer>(pages.map((page) => [page.path, { type: "page", page }]));
  const [front, second] = pages;
  if (!front) return answers;
  const original = second ?? front;
  answers.set("/private/list", {
    type: "page",
    page: { ...front, path: "/private/list", seed: front.seed ^ 7, links: [] },
  });
  if (extras.redirect) {
    answers.set("/start", { type: "redirect", to: original.path, status: random.chance(0.5) ? 301 : 302 });
  }
  if (extras.duplicate) answers.set("/print/1", { type: "page", page: original });
  if (extras.noindex) {
    const page = {
      ...front,
      path: "/login",
      title: "Login",
      seed: front.seed ^ 3,
      textBytes: 800,
      noindex: true,
      links: [],
    };
    answers.set("/login", { type: "page", page });
  }
  return answers;
}

/** Up to three other sites; occasionally a missing one, or one with nofollow. */
function linksAbroad(world: World, site: WorldSite, random: SeededRandom): PageLink[] {
  return Array.from({ length: random.integer(0, 3) }, () => {
    if (random.chance(0.02)) return link("http://closed-down.example/", "closed");
    const other = random.pick(world.sites);
    const nofollow = random.chance(0.1);
    return { href: `http://${other.host}/`, text: siteName(other.host), nofollow };
  }).filter(({ href }) => href !== `http://${site.host}/`);
}

function robotsOf(site: WorldSite, random: SeededRandom): { robots: string | null; hasSitemap: boolean } {
  if (random.chance(0.15)) return { robots: null, hasSitemap: false };
  const hasSitemap = random.chance(0.4);
  const lines = ["User-agent: *"];
  lines.push(random.chance(0.7) ? "Disallow: /private/" : "Disallow:");
  if (random.chance(0.3)) lines.push("Disallow: /*?session=");
  if (random.chance(0.06)) lines.push("Crawl-delay: 1");
  if (random.chance(0.1)) lines.push("", "User-agent: GreedyBot", "Disallow: /");
  if (hasSitemap) lines.push("", `Sitemap: http://${site.host}/sitemap.xml`);
  return { robots: `${lines.join("\n")}\n`, hasSitemap };
}

function link(href: string, text: string): PageLink {
  return { href, text, nofollow: false };
}
