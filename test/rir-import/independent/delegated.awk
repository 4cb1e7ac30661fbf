# Delegated statistics: prints records, kept, ignored, malformed.
BEGIN { FS = "|"; known = "^(afrinic|apnic|arin|iana|lacnic|ripencc)$" }
{ sub(/\r$/, "") }
/^#/ || /^[ \t]*$/ || ($1 ~ /^[0-9.]+$/ && NF >= 6) || $6 == "summary" { next }
{ records++ }
NF < 7 || $1 !~ known || $3 !~ /^(asn|ipv4|ipv6)$/ { malformed++; next }
$3 == "asn" { ignored++; next }
$7 != "allocated" && $7 != "assigned" && !($1 == "iana" && $7 ~ known) { ignored++; next }
$3 == "ipv4" {
  first = number4($4)
  if (first < 0 || $5 !~ /^[1-9][0-9]*$/ || first + $5 > 2 ^ 32) malformed++
  else if (special4(first, first + $5 - 1)) ignored++
  else kept++
  next
}
!groups6($4, g) || $5 !~ /^[0-9]+$/ || $5 > 128 { malformed++; next }
special6(g, $5) { ignored++; next }
{ kept++ }
END { print records + 0, kept + 0, ignored + 0, malformed + 0 }
