# RPSL and ARIN's text dump: prints records, kept, ignored, malformed. An object of ours has one of the class
# attributes; a second one in it begins another object.
function forget() { begun = class = fault = open = ""; split("", value) }

function finish() {
  if (begun != "") {
    records++
    if (class == "") ignored++
    else if (fault) malformed++
    else count(class, value[class])
  }
  forget()
}

function count(class, text) {
  if (class == "organisation" || class == "orgid") {
    if (text == "" || value[class == "orgid" ? "orgname" : "org-name"] == "") malformed++
    else kept++
    return
  }
  if (class ~ /nethandle/) text = value["netrange"]
  sub(/#.*/, "", text)
  verdict = index(text, ":") ? verdict6(text) : verdict4(text)
  if (verdict == "malformed") malformed++
  else if (verdict == "special" || placeholder()) ignored++
  else kept++
}

function verdict4(text, ends, n, first, last, size) {
  if (index(text, "-")) {
    n = split(text, ends, "-")
    if (n != 2 || ends[1] !~ /\..*\..*\./ || ends[2] !~ /\..*\..*\./) return "malformed"
    first = number4(ends[1])
    last = number4(ends[2])
  } else {
    n = split(text, ends, "/")
    if (n > 2 || (n == 1 && text !~ /\..*\..*\./) || (n == 2 && (ends[2] !~ /^[ \t]*[0-9]+[ \t]*$/ || ends[2] > 32))) return "malformed"
    first = number4(ends[1])
    size = n == 1 ? 1 : 2 ^ (32 - ends[2])
    first = first < 0 ? first : first - first % size
    last = first + size - 1
  }
  if (first < 0 || last < first) return "malformed"
  whole = last - first >= 2 ^ 31 - 1
  return special4(first, last) && !whole ? "special" : "good"
}

function verdict6(text, ends, n, g, h, i) {
  whole = 0
  if (split(text, ends, "-") == 2) {
    if (!groups6(ends[1], g) || !groups6(ends[2], h)) return "malformed"
    for (i = 1; i <= 8 && g[i] == h[i]; i++);
    if (i <= 8 && g[i] > h[i]) return "malformed"
    return special6(g, 128) && special6(h, 128) ? "special" : "good"
  }
  n = split(text, ends, "/")
  if (n > 2 || !groups6(ends[1], g) || (n == 2 && (ends[2] !~ /^[ \t]*[0-9]+[ \t]*$/ || ends[2] > 128))) return "malformed"
  if (n == 1) ends[2] = 128
  whole = ends[2] <= 1
  return special6(g, ends[2] + 0) && !whole ? "special" : "good"
}

function placeholder(name, words) {
  name = toupper(value["netname"])
  words = value["org"] == "" ? tolower(value["owner"] == "" ? value["descr"] : value["owner"]) : ""
  return whole || name ~ /(^|-)NON-[A-Z]+(-NCC)?-MANAGED-ADDRESS-BLOCK|^IANA-(BLK|BLOCK|NETBLOCK|RESERVED)|(^|-)ERX(-|$)|^STUB-/ \
    || name ~ /(^|-)TRANSFERRED(-|$)|^NOT-(RIPE|APNIC|AFRINIC|LACNIC|ARIN)|^VARIOUS-REGISTRIES/ \
    || words ~ /transferred to (the )?(ripe|apnic|arin|lacnic|afrinic)|not managed by the (ripe|apnic|afrinic)/
}

function trimmed(text) { sub(/(^|[ \t])#.*/, "", text); gsub(/^[ \t]+|[ \t]+$/, "", text); return text }

BEGIN { forget() }
{ sub(/\r$/, "") }
/^$/ { finish(); next }
/^[#%]/ { next }
/^[ \t+]/ { if (open != "") { gsub(/^[ \t+]+/, ""); value[open] = trimmed(value[open] " " $0) } next }
{
  name = tolower($0)
  open = ""
  if (!match(name, /^[a-z*][a-z0-9*_-]*[ \t]*:/)) { if (begun == "") begun = "?"; fault = 1; next }
  name = substr(name, 1, RLENGTH - 1)
  gsub(/[ \t]/, "", name)
  rest = trimmed(substr($0, RLENGTH + 1))
  if (name ~ /^(inetnum|inet6num|organisation|nethandle|v6nethandle)$/ || (name == "orgid" && begun == "")) {
    if (class != "") finish()
    class = name
  }
  if (begun == "") begun = name
  if (!(name in value)) { value[name] = rest; open = name }
}
END { finish(); print records + 0, kept + 0, ignored + 0, malformed + 0 }
