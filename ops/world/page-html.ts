/** A planned page as HTML: the same plan gives the same bytes. */

import type { Language } from "./places.ts";
import { SeededRandom } from "./seeded-random.ts";
import type { PageLink, PlannedPage, SitePlan } from "./site-plan.ts";

export function pageHtml(plan: SitePlan, page: PlannedPage, furniture: Furniture): string {
  const random = new SeededRandom(page.seed);
  const text = bodyText(page, plan.name, random);
  const language = plan.saysLanguage ? ` lang="${page.language}"` : "";
  const robots = page.noindex ? '\n<meta name="robots" content="noindex">' : "";
  return `<!doctype html>
<html${language}>
<head>
<meta charset="utf-8">
<title>${escapeHtml(titleOf(plan, page))}</title>
<meta name="description" content="${escapeHtml(random.pick(sentencePool(page.language)))}">
<meta name="viewport" content="width=device-width">${robots}
${style}
${furniture.head}
</head>
<body>
<header><p>${escapeHtml(plan.name)}</p>
<nav><ul>${navigation(plan)}</ul></nav></header>
${furniture.menu}
<main>
<h1>${escapeHtml(page.title)}</h1>
${text}
<ul>${page.links.map(item).join("")}</ul>
</main>
<footer><p>${escapeHtml(plan.name)} · <a href="mailto:office@${plan.site.host}">office@${plan.site.host}</a></p></footer>
${furniture.foot}
</body>
</html>
`;
}

const style = `<style>${[
  "body{font:1rem/1.5 serif;max-width:44rem;margin:auto;padding:1rem}",
  "nav ul{display:flex;gap:1rem;padding:0;list-style:none}",
  "h1,h2{line-height:1.2}",
  "footer{margin-top:3rem;color:#555}",
].join("")}</style>`;

function titleOf(plan: SitePlan, page: PlannedPage): string {
  return page.title === plan.name ? plan.name : `${page.title} – ${plan.name}`;
}

/** Links to the first pages, on every page. */
function navigation(plan: SitePlan): string {
  return plan.pages
    .slice(0, 4)
    .map((page) => item({ href: page.path, text: page.title, nofollow: false }))
    .join("");
}

function item({ href, text, nofollow }: PageLink): string {
  return `<li><a href="${escapeHtml(href)}"${nofollow ? ' rel="nofollow"' : ""}>${escapeHtml(text)}</a></li>`;
}

/** Paragraphs with occasional headings, up to the planned size. */
function bodyText(page: PlannedPage, siteName: string, random: SeededRandom): string {
  const pool = sentencePool(page.language);
  const parts: string[] = [`<p><strong>${escapeHtml(siteName)}:</strong> ${random.pick(pool)}</p>`];
  for (let bytes = 0; bytes < page.textBytes; ) {
    const sentences = Array.from({ length: random.integer(3, 7) }, () => random.pick(pool));
    const paragraph = `<p>${sentences.join(" ")}</p>`;
    if (random.chance(0.2)) parts.push(`<h2>${random.pick(pool).slice(0, -1)}</h2>`);
    parts.push(paragraph);
    bytes += paragraph.length;
  }
  return parts.join("\n");
}

/** The sentences contain no markup characters. */
function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

// The markup around a real page's text: inline styles, script data, menus with classes, icons. It is most of a page's bytes
// (the median page has about ten times as much markup as visible text), which a crawler reads but does not ship. Equal on all
// pages of a site.

export interface Furniture {
  /** Inside `<head>`. */
  readonly head: string;
  /** Between the header and the text. */
  readonly menu: string;
  /** Before `</body>`. */
  readonly foot: string;
}

const medianBytes = 34_000;
const leastBytes = 6_000;
const mostBytes = 160_000;

/** Log-normal in size; deterministic by seed. */
export function siteFurniture(seed: number): Furniture {
  const random = new SeededRandom(seed);
  const size = Math.min(mostBytes, Math.max(leastBytes, medianBytes * Math.exp(0.6 * random.normal())));
  const classes = Array.from({ length: 60 }, () => className(random));
  return {
    head: `<style>${repeated(size * 0.4, () => cssRule(random, classes))}</style>`,
    menu: `<div class="${random.pick(classes)}" role="navigation">${repeated(size * 0.35, () => menuEntry(random, classes))}</div>`,
    foot: `<script>window.__state={"build":"${hex(random, 16)}","items":[${repeated(size * 0.25, () => stateItem(random, classes)).slice(0, -1)}]}</script>`,
  };
}

function repeated(bytes: number, make: () => string): string {
  const parts: string[] = [];
  for (let length = 0; length < bytes; ) {
    const part = make();
    parts.push(part);
    length += part.length;
  }
  return parts.join("");
}

const properties = ["margin", "padding", "gap", "top", "width", "border-radius", "line-height", "flex-basis"];

function cssRule(random: SeededRandom, classes: readonly string[]): string {
  const declarations = Array.from(
    { length: random.integer(2, 6) },
    () => `${random.pick(properties)}:${random.integer(0, 64)}px`,
  );
  return `.${random.pick(classes)} .${random.pick(classes)}:hover{${declarations.join(";")};color:#${hex(random, 6)}}`;
}

/** An icon and a box, without a word: menus must not add to the text. */
function menuEntry(random: SeededRandom, classes: readonly string[]): string {
  const path = Array.from({ length: 8 }, () => `${random.integer(0, 24)}.${random.integer(0, 9)}`).join(" ");
  const [first, second, id, icon] = [
    random.pick(classes),
    random.pick(classes),
    hex(random, 8),
    random.pick(classes),
  ];
  const drawing = `<svg viewBox="0 0 24 24"><path d="M${path}z"/></svg>`;
  return `<div class="${first} ${second}" data-id="${id}"><span class="${icon}" aria-hidden="true">${drawing}</span></div>`;
}

function stateItem(random: SeededRandom, classes: readonly string[]): string {
  return `{"id":"${hex(random, 12)}","type":"${random.pick(classes)}","rank":${random.integer(1, 999)},"visible":${random.chance(0.5)}},`;
}

function className(random: SeededRandom): string {
  const parts = ["nav", "card", "grid", "item", "row", "col", "hero", "list", "btn", "wrap", "inner", "tile"];
  return `${random.pick(parts)}-${random.pick(parts)}__${hex(random, 4)}`;
}

function hex(random: SeededRandom, digits: number): string {
  return Array.from({ length: digits }, () => random.integer(0, 15).toString(16)).join("");
}

// * Seeded text that resembles a language: subjects, predicates and adverbials of our own in eight languages, combined into
// sentences. Each language has a pool of sentences, so that a page costs little more than copying.

/** Sentences of each language in the pool. */
const poolSize = 3000;
const pools = new Map<Language, readonly string[]>();

/** The pool of a language: the same on every machine. */
function sentencePool(language: Language): readonly string[] {
  const known = pools.get(language);
  if (known) return known;
  const parts = grammar[language];
  const random = new SeededRandom(0x5e47 + languages.indexOf(language));
  const pool = Array.from({ length: poolSize }, () => sentence(parts, random));
  pools.set(language, pool);
  return pool;
}

/** A short heading: a subject, capitalised, without an end mark. */
export function headline(language: Language, random: SeededRandom): string {
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

/** Subjects, predicates, objects, places, times and joints, one paragraph each. */
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
