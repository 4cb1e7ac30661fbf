/**
 * Judges each page by what is remembered of its host: near-duplicates, "not found" pages with status 200, and links into
 * patterns that lead to nothing new. One instance lives as long as the crawler. The least recently crawled hosts are dropped.
 * Nothing is saved on disk, because it is soon learned again.
 */
import { randomInt } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { PageExtract } from "#protocol/result";
import { HostMemory, looksAlike, pagePrint } from "./host-memory.ts";

/** Limit for all hosts together. A host with 256 pages takes about 80 KB. */
const maxBytes = 8_000_000;

const maxHosts = 5000;

/** Minimum time until a host is again asked for a page that cannot exist. */
const askAgainMs = 24 * 3600 * 1000;

/** The host's answer for a page that cannot exist. */
export type MissingAnswer =
  | { readonly type: "page"; readonly page: PageExtract }
  /** An error, redirect or refusal, which leaves nothing to compare. */
  | { readonly type: "no-page" }
  /** There was no turn for the request. */
  | { readonly type: "not-asked" };

interface JudgedAt {
  readonly url: string;
  readonly nowMs: number;
  /** Asks the origin for this path, politely, at most once a day per host. */
  readonly ask: (path: string) => Promise<MissingAnswer>;
}

export class SiteMemory {
  readonly #hosts = new LRUCache<string, HostMemory>({ max: maxHosts, maxSize: maxBytes });

  get bytes(): number {
    return this.#hosts.calculatedSize;
  }

  /** Adds what the host's other pages reveal. For sitemaps and feeds, only links are checked. */
  async judge(page: PageExtract, at: JudgedAt): Promise<PageExtract> {
    const { hostname } = new URL(at.url);
    const memory = this.#hosts.get(hostname) ?? new HostMemory();
    // Pages drawn by scripts look alike without them, which says nothing about the pages.
    const isJudged = page.kind !== "sitemap" && page.kind !== "feed" && page.needsScripts !== true;
    const judged = isJudged ? await judgePage(page, memory, at) : page;
    const shipped = withoutKnownTraps(judged, memory, hostname);
    // The cache keeps the initial size of an object, so it is inserted again.
    this.#hosts.delete(hostname);
    this.#hosts.set(hostname, memory, { size: memory.bytes });
    return shipped;
  }
}

async function judgePage(page: PageExtract, memory: HostMemory, at: JudgedAt): Promise<PageExtract> {
  const print = pagePrint(page, at.url);
  const { duplicateOf, isAlike } = memory.likeness(at.url, print);
  const isMissing = await isSoftNotFound(page, memory, { ...at, isAlike });
  memory.note(at.url, print, isAlike || isMissing);
  if (isMissing) return withoutContent(page);
  return duplicateOf === null ? page : { ...page, nearDuplicateOf: duplicateOf };
}

async function isSoftNotFound(
  page: PageExtract,
  memory: HostMemory,
  at: JudgedAt & { readonly isAlike: boolean },
): Promise<boolean> {
  const suspicion = suspicionOf(page, at);
  if (suspicion !== "likely") return suspicion === "certain";
  if (memory.missing === null || at.nowMs - memory.missing.askedAtMs >= askAgainMs) await ask(memory, at);
  const print = memory.missing?.print ?? null;
  return print !== null && looksAlike(pagePrint(page, at.url), print);
}

async function ask(memory: HostMemory, at: JudgedAt): Promise<void> {
  // Uses digits only, so that a page that repeats them differs only in numbers.
  const path = `/no-such-page-${randomInt(1e9, 1e10)}`;
  const answer = await at.ask(path);
  if (answer.type === "not-asked") return;
  const print = answer.type === "page" ? pagePrint(answer.page, new URL(path, at.url).href) : null;
  memory.missing = { askedAtMs: at.nowMs, print };
}

/** Nothing of the page is indexed. Its links are those of every page, or random. */
function withoutContent(page: PageExtract): PageExtract {
  const { unquoted: _, ...rest } = page;
  return { ...rest, softNotFound: true, text: "", links: [] };
}

function withoutKnownTraps(page: PageExtract, memory: HostMemory, hostname: string): PageExtract {
  const links = page.links.filter(({ url }) => !isOf(hostname, url) || !memory.isTrap(url));
  const trapped = page.links.length - links.length;
  return trapped === 0 ? page : { ...page, links, trappedLinks: (page.trappedLinks ?? 0) + trapped };
}

/** `url` is canonical. */
function isOf(hostname: string, url: string): boolean {
  const at = url.indexOf("//") + 2;
  const after = url[at + hostname.length];
  return url.startsWith(hostname, at) && (after === "/" || after === ":");
}

// Recognises "not found" pages with status 200 (Bar-Yossef and others, "Sic transit gloria telae", WWW 2004) by clear wording,
// or by similarity to the host's answer for a page that cannot exist. Long pages are never considered such pages, since they
// may be about the subject.

/** An error page has fewer words, including menus and footers. */
const mostWords = 400;

type Suspicion = "certain" | "likely" | "none";

/** `isAlike`: another URL of the host has the same or nearly the same page. The front page always exists. */
function suspicionOf(page: PageExtract, at: { readonly url: string; readonly isAlike: boolean }): Suspicion {
  if (page.words > mostWords || new URL(at.url).pathname === "/") return "none";
  const mainHeading = page.headings.find((heading) => heading.level <= 2)?.text ?? "";
  const said = [page.title, mainHeading].map(saysNotFound);
  if (said.includes("said")) return "certain";
  const hinted = said.includes("hinted") || mentionsNotFound(page.text);
  return hinted || at.isAlike ? "likely" : "none";
}

// Recognises how sites say "this page does not exist" in the most common languages of the web.

/** Phrases in lower case, without punctuation. */
const phrases = `
not found|page not found|file not found|document not found|content not found|url not found|resource not found
page cannot be found|page can t be found|page could not be found|page couldn t be found|page was not found
the page you requested was not found|the page you requested could not be found|the requested page was not found
the requested page could not be found|the requested url was not found on this server|page you requested cannot be found
the page you are looking for could not be found|the page you are looking for cannot be found
the page you are looking for was not found|the page you are looking for does not exist
the page you re looking for doesn t exist|the page you were looking for doesn t exist
the page you were looking for could not be found|the page you are looking for doesn t exist
page does not exist|page doesn t exist|this page does not exist|this page doesn t exist
this page isn t available|this page is not available|page not available|that page can t be found|we can t find that page
we couldn t find that page|we couldn t find the page|we can t find the page you are looking for|no such page
we couldn t find the page you were looking for|we couldn t find the page you re looking for
seite nicht gefunden|nicht gefunden|die seite wurde nicht gefunden|seite wurde nicht gefunden|diese seite existiert nicht
die seite konnte nicht gefunden werden|die angeforderte seite wurde nicht gefunden|die seite existiert nicht
die gesuchte seite wurde nicht gefunden|diese seite wurde nicht gefunden|seite existiert nicht
page non trouvée|page introuvable|non trouvé|page inexistante|cette page n existe pas|la page n existe pas
la page demandée n existe pas|la page demandée est introuvable|la page que vous recherchez n existe pas
la page que vous recherchez est introuvable|cette page est introuvable
página no encontrada|no encontrado|no encontrada|la página no existe|esta página no existe|página inexistente
no se ha encontrado la página|no se encontró la página|la página solicitada no existe|la página que buscas no existe
pagina non trovata|la pagina non esiste|questa pagina non esiste|la pagina richiesta non esiste|pagina inesistente
la pagina che stai cercando non esiste|la pagina richiesta non è stata trovata
página não encontrada|não encontrado|a página não foi encontrada|a página não existe|esta página não existe
pàgina no trobada|páxina non atopada|orria ez da aurkitu
pagina niet gevonden|niet gevonden|deze pagina bestaat niet|de pagina bestaat niet|de pagina is niet gevonden
de pagina kon niet worden gevonden|de opgevraagde pagina is niet gevonden
sidan hittades inte|sidan kunde inte hittas|sidan finns inte|hittade inte sidan|sidan du söker finns inte
siden blev ikke fundet|siden findes ikke|siden kunne ikke findes|side ikke fundet
siden ble ikke funnet|siden finnes ikke|fant ikke siden|side ikke funnet|siden du leter etter finnes ikke
sivua ei löytynyt|sivua ei löydy|hakemaasi sivua ei löytynyt|síða fannst ekki|síðan fannst ekki
lehekülge ei leitud|lapa nav atrasta|puslapis nerastas
nie znaleziono strony|strona nie została znaleziona|strona nie istnieje|nie znaleziono|strony nie znaleziono
stránka nenalezena|stránka nebyla nalezena|stránka neexistuje|stránka nebola nájdená|stránka sa nenašla
az oldal nem található|a keresett oldal nem található|oldal nem található
pagina nu a fost găsită|pagina nu a fost gasita|pagina nu există|pagină negăsită
stranica nije pronađena|stranica ne postoji|stran ni bila najdena|strani ni mogoče najti|faqja nuk u gjet
sayfa bulunamadı|aradığınız sayfa bulunamadı|böyle bir sayfa yok
η σελίδα δεν βρέθηκε|δεν βρέθηκε η σελίδα|η σελίδα που ζητήσατε δεν βρέθηκε
страница не найдена|не найдено|такой страницы нет|страница не существует|запрашиваемая страница не найдена
сторінку не знайдено|сторінка не знайдена|страницата не е намерена|страницата не беше намерена|страница није пронађена
הדף לא נמצא|העמוד לא נמצא|הדף המבוקש לא נמצא
الصفحة غير موجودة|لم يتم العثور على الصفحة|الصفحة المطلوبة غير موجودة|صفحه مورد نظر یافت نشد|صفحه یافت نشد|صفحه پیدا نشد
पृष्ठ नहीं मिला|पेज नहीं मिला|পৃষ্ঠা পাওয়া যায়নি|ไม่พบหน้าที่คุณต้องการ|ไม่พบหน้านี้|ไม่พบหน้า
không tìm thấy trang|trang không tồn tại|halaman tidak ditemukan|laman tidak dijumpai
ページが見つかりません|ページが見つかりませんでした|お探しのページは見つかりませんでした|お探しのページは見つかりません|ページが存在しません
页面不存在|页面未找到|找不到页面|您访问的页面不存在|您访问的页面不存在或已删除|頁面不存在|找不到頁面|找不到網頁|未找到页面
페이지를 찾을 수 없습니다|요청하신 페이지를 찾을 수 없습니다|존재하지 않는 페이지입니다`;

const beyondLatin = /[^\0-\u024f\u1e00-\u1eff]/;
const known = new Set(phrases.trim().split(/\||\n/).map(plainWords));

/**
 * Phrases that are also conclusive within a longer text, by their first word. Two-word phrases of alphabetic scripts are left
 * out, because they may occur in any sentence. Phrases without blanks belong to scripts without blanks.
 */
const telling = new Map<string, string[]>();

const unspaced: string[] = [];

for (const phrase of known) {
  const words = phrase.split(" ");
  if (words.length > 2) telling.set(words[0]!, [...(telling.get(words[0]!) ?? []), phrase]);
  else if (beyondLatin.test(phrase)) unspaced.push(phrase);
}

/** Words around a phrase that add nothing. */
const fillerWords = [
  "4 ?0 ?4|http|https|status|code|error|erreur|fehler|fehlerseite|errore|erro|fel|feil|fejl|virhe|błąd|chyba|hiba|eroare|hata|ошибка|помилка",
  "oops|whoops|uh oh|ups|hoppla|sorry|oh no|we re sorry|lo sentimos|désolé|the|a|die|la|el",
].join("|");
const fillers = new RegExp(`(?<![\\p{L}\\p{N}])(?:${fillerWords})(?![\\p{L}\\p{N}])`, "gu");

/** Longer titles and headings are sentences about something. */
const maxTitleCharacters = 200;

/**
 * `said`: the whole title, or a part between separators, says nothing else. `hinted`: the phrase occurs somewhere, or a part
 * is only a 404.
 */
export function saysNotFound(title: string): "said" | "hinted" | null {
  const bounded = title.slice(0, maxTitleCharacters);
  const parts = bounded.split(/\s[-–—|·:»«•]+\s|[|:!?.｜。！？]\s*/u).map(plainWords);
  if ([...parts, plainWords(bounded)].some((part) => known.has(part))) return "said";
  const bare = parts.filter((part) => part !== "").map((part) => ({ part, rest: withoutFillers(part) }));
  if (bare.some(({ rest }) => known.has(rest))) return "said";
  if (bare.some(({ part, rest }) => rest === "" && /(?:^| )404(?: |$)/.test(part))) return "hinted";
  return tells(plainWords(bounded)) ? "hinted" : null;
}

/** Whether the start of a text contains a phrase, or a line that consists of nothing else. */
export function mentionsNotFound(text: string): boolean {
  const start = text.slice(0, 600);
  return start.split("\n").some((line) => known.has(plainWords(line))) || tells(plainWords(start));
}

function tells(words: string): boolean {
  for (let at = 0; at < words.length; at = words.indexOf(" ", at) + 1) {
    const end = words.indexOf(" ", at);
    const word = words.slice(at, end < 0 ? undefined : end);
    if (telling.get(word)?.some((phrase) => words.startsWith(phrase, at))) return true;
    if (end < 0) break;
  }
  return beyondLatin.test(words) && unspaced.some((phrase) => words.includes(phrase));
}

const withoutFillers = (words: string): string => words.replace(fillers, " ").replace(/\s+/g, " ").trim();

/** Keeps letters, marks and digits in lower case, with one blank between words. */
function plainWords(text: string): string {
  return text
    .normalize("NFC")
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}]+/gu, " ")
    .trim();
}
