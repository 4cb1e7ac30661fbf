/**
 * What a site consists of, derived from its host name alone: which paths exist and what each answers, who may crawl it,
 * and where its links lead. Ordinary pages form a tree below the front page (each links to at most four children), so
 * that all of them can be reached from `/`. Some sites also have a redirect, a duplicate, a page that asks not to be
 * indexed, a part that robots.txt closes, and links that lead nowhere.
 */
import type { World, WorldSite } from "./model.ts";
import type { Language } from "./places.ts";
import { hashText, SeededRandom } from "./seeded-random.ts";

export interface SitePlan {
  readonly site: WorldSite;
  readonly name: string;
  /** Null when the site has no robots.txt. */
  readonly robots: string | null;
  readonly hasSitemap: boolean;
  /** False when the pages do not state their language. */
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
  /** The seed of the page's text. Pages with the same seed and title have the same bytes. */
  readonly seed: number;
  /** Approximate number of bytes of text. */
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

/** Example: `Silver Harbour` for `silver-harbour-0042.example`. */
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

/** Extra pages, to which the front page links. */
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

/** Returns links to up to three other sites, occasionally to a missing one, or with nofollow. */
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

// Generates language-like text from a seed, combining our own subjects, predicates and adverbials in eight languages
// into sentences. Each language has a pool of ready-made sentences, so a page costs little more than copying them.

/** How many sentences the pool of each language has. */
const poolSize = 3000;
const pools = new Map<Language, readonly string[]>();

/** Returns a language's pool, which is the same on every machine. */
export function sentencePool(language: Language): readonly string[] {
  const known = pools.get(language);
  if (known) return known;
  const parts = grammar[language];
  const random = new SeededRandom(0x5e47 + languages.indexOf(language));
  const pool = Array.from({ length: poolSize }, () => sentence(parts, random));
  pools.set(language, pool);
  return pool;
}

/** A short heading: a capitalised subject without a full stop. */
function headline(language: Language, random: SeededRandom): string {
  const { subjects, places } = grammar[language];
  const subject = capital(random.pick(subjects));
  return random.chance(0.5) ? subject : `${subject} ${random.pick(places)}`;
}

interface Grammar {
  readonly subjects: readonly string[];
  readonly predicates: readonly string[];
  readonly objects: readonly string[];
  readonly places: readonly string[];
  readonly times: readonly string[];
  readonly joints: readonly string[];
}

function sentence(parts: Grammar, random: SeededRandom): string {
  const clause = () => {
    const words = [random.pick(parts.subjects), random.pick(parts.predicates), random.pick(parts.objects)];
    if (random.chance(0.6)) words.push(random.pick(parts.places));
    if (random.chance(0.5)) words.push(random.pick(parts.times));
    return words.join(" ");
  };
  const joined = random.chance(0.35) ? `${clause()}, ${random.pick(parts.joints)} ${clause()}` : clause();
  return `${capital(joined)}.`;
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Subjects, predicates, objects, places, times and conjunctions, one paragraph each. */
const texts: Readonly<Record<Language, string>> = {
  en: `the old harbour|a small bakery|our reading group|the town council|every second visitor|the new library|a retired engineer|the evening market|
the weather service|this year's harvest|the choir|a group of students|the ferry|my neighbour|the winter exhibition|a travelling theatre|
the botanical garden|the local newspaper|an early train|the repair shop|the river festival|a young carpenter

opens|describes|has restored|keeps|will show|follows|remembers|collects|offers|carries|is looking for|explains|protects|has found|repairs|sells|
compares|measures|publishes|welcomes

a collection of hand-drawn maps|fresh bread and seasonal cakes|the history of the valley|several hundred photographs|a quiet path along the water|
the results of last summer|tickets for the whole family|a wooden bridge from another century|new rules for cyclists|the first swallows of spring|
letters from distant relatives|an unusual clock|the price of timber|warm soup and good company|the names of forgotten villages|
tools that nobody makes any more|a map of walking routes|questions about the water supply

near the station|behind the church|on the northern shore|in the upper village|across the river|at the edge of the forest|in the town hall|
along the coast|under the stone arches|between two hills

every Thursday|since last autumn|before sunrise|during the long winter|for the first time|after many years|twice a month|until the end of May|
on quiet afternoons|as in earlier days

and|while|because|although|so that in the end|but`,
  de: `der alte Hafen|eine kleine Bäckerei|unser Lesekreis|der Gemeinderat|jeder zweite Besucher|die neue Bücherei|eine pensionierte Ingenieurin|
der Abendmarkt|der Wetterdienst|die diesjährige Ernte|der Chor|eine Gruppe von Studierenden|die Fähre|mein Nachbar|die Winterausstellung|
ein reisendes Theater|der botanische Garten|die Lokalzeitung|ein früher Zug|die Werkstatt|das Flussfest|ein junger Schreiner

eröffnet|beschreibt|zeigt|bewahrt|verfolgt|sammelt|bietet|trägt|sucht|erklärt|schützt|findet|verkauft|vergleicht|misst|veröffentlicht|begrüßt|kennt|
braucht|liebt

eine Sammlung handgezeichneter Karten|frisches Brot und Kuchen der Jahreszeit|die Geschichte des Tales|mehrere hundert Fotografien|
einen ruhigen Weg am Wasser|die Ergebnisse des letzten Sommers|Karten für die ganze Familie|eine Holzbrücke aus einem anderen Jahrhundert|
neue Regeln für Radfahrer|die ersten Schwalben des Frühlings|Briefe von entfernten Verwandten|eine ungewöhnliche Uhr|den Preis des Holzes|
warme Suppe und gute Gesellschaft|die Namen vergessener Dörfer|Werkzeuge, die niemand mehr herstellt|einen Plan der Wanderwege|
Fragen zur Wasserversorgung

beim Bahnhof|hinter der Kirche|am nördlichen Ufer|im oberen Dorf|jenseits des Flusses|am Waldrand|im Rathaus|entlang der Küste|
unter den steinernen Bögen|zwischen zwei Hügeln

jeden Donnerstag|seit dem letzten Herbst|vor Sonnenaufgang|während des langen Winters|zum ersten Mal|nach vielen Jahren|zweimal im Monat|
bis Ende Mai|an stillen Nachmittagen|wie in früheren Tagen

und|aber|denn|doch|und am Ende|oder`,
  fr: `le vieux port|une petite boulangerie|notre cercle de lecture|le conseil municipal|un visiteur sur deux|la nouvelle bibliothèque|
une ingénieure à la retraite|le marché du soir|le service météo|la récolte de cette année|la chorale|un groupe d'étudiants|le bac|mon voisin|
l'exposition d'hiver|un théâtre ambulant|le jardin botanique|le journal local|un train matinal|l'atelier de réparation|la fête du fleuve|
un jeune menuisier

ouvre|décrit|montre|conserve|suit|rassemble|propose|porte|cherche|explique|protège|trouve|répare|vend|compare|mesure|publie|accueille|connaît|
raconte

une collection de cartes dessinées à la main|du pain frais et des gâteaux de saison|l'histoire de la vallée|plusieurs centaines de photographies|
un chemin tranquille au bord de l'eau|les résultats de l'été dernier|des billets pour toute la famille|un pont de bois d'un autre siècle|
de nouvelles règles pour les cyclistes|les premières hirondelles du printemps|des lettres de parents éloignés|une horloge peu commune|
le prix du bois|une soupe chaude et de bonne compagnie|les noms de villages oubliés|des outils que personne ne fabrique plus|un plan des sentiers|
des questions sur l'eau potable

près de la gare|derrière l'église|sur la rive nord|dans le village d'en haut|de l'autre côté du fleuve|à la lisière de la forêt|à la mairie|
le long de la côte|sous les arches de pierre|entre deux collines

chaque jeudi|depuis l'automne dernier|avant le lever du soleil|pendant le long hiver|pour la première fois|après bien des années|deux fois par mois|
jusqu'à la fin de mai|les après-midi calmes|comme autrefois

et|tandis que|parce que|bien sûr|mais|alors que`,
  es: `el viejo puerto|una pequeña panadería|nuestro grupo de lectura|el ayuntamiento|uno de cada dos visitantes|la nueva biblioteca|una ingeniera jubilada|
el mercado de la tarde|el servicio meteorológico|la cosecha de este año|el coro|un grupo de estudiantes|el transbordador|mi vecino|
la exposición de invierno|un teatro ambulante|el jardín botánico|el periódico local|un tren temprano|el taller|la fiesta del río|un joven carpintero

abre|describe|muestra|conserva|sigue|reúne|ofrece|lleva|busca|explica|protege|encuentra|repara|vende|compara|mide|publica|recibe|conoce|cuenta

una colección de mapas dibujados a mano|pan fresco y pasteles de temporada|la historia del valle|varios cientos de fotografías|
un camino tranquilo junto al agua|los resultados del verano pasado|entradas para toda la familia|un puente de madera de otro siglo|
nuevas normas para ciclistas|las primeras golondrinas de la primavera|cartas de parientes lejanos|un reloj poco común|el precio de la madera|
sopa caliente y buena compañía|los nombres de pueblos olvidados|herramientas que ya nadie fabrica|un plano de los senderos|
preguntas sobre el agua potable

cerca de la estación|detrás de la iglesia|en la orilla norte|en el pueblo de arriba|al otro lado del río|al borde del bosque|en la casa consistorial|
a lo largo de la costa|bajo los arcos de piedra|entre dos colinas

cada jueves|desde el otoño pasado|antes del amanecer|durante el largo invierno|por primera vez|después de muchos años|dos veces al mes|
hasta finales de mayo|en las tardes tranquilas|como en otros tiempos

y|mientras|porque|aunque|pero|de modo que`,
  pt: `o velho porto|uma pequena padaria|o nosso grupo de leitura|a câmara municipal|a nova biblioteca|uma engenheira reformada|o mercado da tarde|
a colheita deste ano|o coro|um grupo de estudantes|o meu vizinho|a exposição de inverno|o jardim botânico|o jornal local|a oficina|a festa do rio

abre|descreve|mostra|conserva|segue|reúne|oferece|leva|procura|explica|protege|encontra|vende|compara|mede|publica|recebe|conhece

uma coleção de mapas desenhados à mão|pão fresco e bolos da estação|a história do vale|várias centenas de fotografias|
um caminho tranquilo junto à água|os resultados do verão passado|bilhetes para toda a família|uma ponte de madeira de outro século|
as primeiras andorinhas da primavera|cartas de parentes distantes|o preço da madeira|os nomes de aldeias esquecidas|
ferramentas que já ninguém fabrica

perto da estação|atrás da igreja|na margem norte|do outro lado do rio|à beira da floresta|ao longo da costa|entre duas colinas

todas as quintas-feiras|desde o outono passado|antes do amanhecer|durante o longo inverno|pela primeira vez|depois de muitos anos|até ao fim de maio

e|enquanto|porque|mas|de modo que`,
  it: `il vecchio porto|una piccola panetteria|il nostro gruppo di lettura|il consiglio comunale|la nuova biblioteca|un'ingegnera in pensione|
il mercato serale|il raccolto di quest'anno|il coro|un gruppo di studenti|il mio vicino|la mostra d'inverno|il giardino botanico|il giornale locale|
l'officina|la festa del fiume

apre|descrive|mostra|conserva|segue|raccoglie|offre|porta|cerca|spiega|protegge|trova|vende|confronta|misura|pubblica|accoglie|conosce

una raccolta di carte disegnate a mano|pane fresco e dolci di stagione|la storia della valle|diverse centinaia di fotografie|
un sentiero tranquillo lungo l'acqua|i risultati della scorsa estate|biglietti per tutta la famiglia|un ponte di legno di un altro secolo|
le prime rondini di primavera|lettere di parenti lontani|il prezzo del legname|i nomi di villaggi dimenticati|attrezzi che nessuno produce più

vicino alla stazione|dietro la chiesa|sulla riva nord|dall'altra parte del fiume|ai margini del bosco|lungo la costa|tra due colline

ogni giovedì|dallo scorso autunno|prima dell'alba|durante il lungo inverno|per la prima volta|dopo molti anni|fino alla fine di maggio

e|mentre|perché|ma|così che`,
  nl: `de oude haven|een kleine bakkerij|onze leesclub|de gemeenteraad|de nieuwe bibliotheek|een gepensioneerde ingenieur|de avondmarkt|
de oogst van dit jaar|het koor|een groep studenten|mijn buurman|de wintertentoonstelling|de botanische tuin|de plaatselijke krant|de werkplaats|
het rivierfeest

opent|beschrijft|toont|bewaart|volgt|verzamelt|biedt|draagt|zoekt|beschermt|vindt|verkoopt|vergelijkt|meet|publiceert|verwelkomt|kent

een verzameling handgetekende kaarten|vers brood en gebak van het seizoen|de geschiedenis van het dal|enkele honderden foto's|
een rustig pad langs het water|de resultaten van vorige zomer|kaartjes voor het hele gezin|een houten brug uit een andere eeuw|
de eerste zwaluwen van het voorjaar|brieven van verre familieleden|de prijs van het hout|de namen van vergeten dorpen|
gereedschap dat niemand meer maakt

bij het station|achter de kerk|op de noordelijke oever|aan de overkant van de rivier|aan de rand van het bos|langs de kust|tussen twee heuvels

elke donderdag|sinds vorige herfst|voor zonsopgang|tijdens de lange winter|voor het eerst|na vele jaren|tot eind mei

en|maar|want|dus uiteindelijk|of`,
  sv: `den gamla hamnen|ett litet bageri|vår läsecirkel|kommunfullmäktige|det nya biblioteket|en pensionerad ingenjör|kvällsmarknaden|årets skörd|kören|
en grupp studenter|min granne|vinterutställningen|den botaniska trädgården|lokaltidningen|verkstaden|flodfesten

öppnar|beskriver|visar|bevarar|följer|samlar|erbjuder|bär|söker|förklarar|skyddar|hittar|säljer|jämför|mäter|välkomnar|känner

en samling handritade kartor|färskt bröd och säsongens kakor|dalens historia|flera hundra fotografier|en stilla stig längs vattnet|
resultaten från förra sommaren|biljetter för hela familjen|en träbro från ett annat århundrade|vårens första svalor|brev från avlägsna släktingar|
priset på virke|namnen på bortglömda byar|verktyg som ingen längre tillverkar

nära stationen|bakom kyrkan|på den norra stranden|på andra sidan floden|vid skogsbrynet|längs kusten|mellan två kullar

varje torsdag|sedan förra hösten|före soluppgången|under den långa vintern|för första gången|efter många år|till slutet av maj

och|medan|eftersom|men|så att`,
};

function readGrammar(text: string): Grammar {
  const [subjects = [], predicates = [], objects = [], places = [], times = [], joints = []] = text
    .split("\n\n")
    .map((part) => part.replaceAll("\n", "").split("|"));
  return { subjects, predicates, objects, places, times, joints };
}

const grammar = Object.fromEntries(
  Object.entries(texts).map(([language, text]) => [language, readGrammar(text)]),
) as Readonly<Record<Language, Grammar>>;

const languages = Object.keys(grammar) as readonly Language[];
