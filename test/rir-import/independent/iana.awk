# IANA's registries (XML): prints records, kept, ignored, malformed. One record of ours for each <record>.
BEGIN { RS = "</record>" }
!/<record[ >]/ { next }
{ records++ }
/<status>(ALLOCATED|LEGACY)</ && /<whois>whois\.(afrinic|apnic|arin|lacnic|ripe)\.net</ { kept++; next }
{ ignored++ }
END { print records + 0, kept + 0, ignored + 0, 0 }
