#include "config/suggestion.h"

#include "config/message.h"
#include "config/schema_lookup.h"
#include "core/text.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace mgt::config {
namespace {

// Every key that the schema knows, dotted, each once.
std::vector<std::string> all_keys(const Schema& schema) {
  std::set<std::string> keys;
  for (const Option& option : schema.top) keys.insert(option.key);
  for (const SectionSpec& section : schema.sections) {
    keys.insert(section.key);
    if (!section.variants.empty()) keys.insert(dotted(section.key, "name"));
    for (const Option& option : section.options) keys.insert(dotted(section.key, option.key));
    for (const Variant& variant : section.variants) {
      for (const Option& option : variant.options) keys.insert(dotted(section.key, option.key));
    }
  }
  return {keys.begin(), keys.end()};
}

std::string last_part(const std::string& dotted_key) { return dotted_key.substr(dotted_key.rfind('.') + 1); }

// The places where a key `word` may stand: "optimizer.lr", "seed at the top level".
std::vector<std::string> places_of(const Schema& schema, const std::string& word) {
  std::vector<std::string> places;
  for (const std::string& key : all_keys(schema)) {
    if (key == word)
      places.push_back(key + " at the top level");
    else if (last_part(key) == word)
      places.push_back(key);
  }
  return places;
}

// The variants of the section that have the option.
std::vector<std::string> owners(const SectionSpec& section, const std::string& key) {
  std::vector<std::string> names;
  for (const Variant& variant : section.variants) {
    if (find_option(variant.options, key) != nullptr) names.push_back(variant.name);
  }
  return names;
}

std::string nearest_anywhere(const Schema& schema, const std::string& word) {
  // Among all words, a short one has a neighbour by chance.
  constexpr std::size_t kShortest = 4;
  if (word.size() < kShortest) return "";
  std::vector<std::string> words;
  for (const std::string& key : all_keys(schema)) words.push_back(last_part(key));
  return nearest(word, words);
}

// Advice for an unknown key: where it belongs, else what is near among `own` keys, else near anywhere, else the list.
std::string advice(const Schema& schema, const std::string& section, const std::string& word,
                   const std::vector<std::string>& own) {
  const std::vector<std::string> places = places_of(schema, word);
  if (!places.empty()) return concat("unknown key here; it belongs elsewhere: write ", join(places, " or "));
  const std::string near = did_you_mean(word, own);
  if (!near.empty()) return "unknown key" + near;
  const std::string meant = nearest_anywhere(schema, word);
  if (!meant.empty()) return concat("unknown key (did you mean ", join(places_of(schema, meant), " or "), "?)");
  return concat("unknown key; known ", section.empty() ? "at the top level" : "in " + section, ": ", join(own));
}

std::string option_list(const SectionSpec& section, const Variant& variant) {
  const std::vector<std::string> keys = keys_of(options_of(section, &variant));
  return keys.empty() ? variant.name + " has no options" : concat("options of ", variant.name, ": ", join(keys));
}

std::string without_option(const SectionSpec& section, const Variant& variant, const std::string& key) {
  return concat(variant.name, " has no option ", key, ", it belongs to ", join(owners(section, key)), "; ",
                option_list(section, variant));
}

}  // namespace

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates) {
  std::string lower = word;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string meant = nearest(lower, candidates);
  return meant.empty() ? "" : " (did you mean " + meant + "?)";
}

bool is_known_key(const Schema& schema, const std::string& dotted_key) {
  const std::vector<std::string> known = all_keys(schema);
  return std::find(known.begin(), known.end(), dotted_key) != known.end();
}

void fail_unknown_key(const Schema& schema, const Node& entry) {
  std::vector<std::string> own = keys_of(schema.top);
  for (const SectionSpec& section : schema.sections) own.push_back(section.key);
  if (is_known_key(schema, entry.key)) {
    fail(entry.key_origin, entry.key,
         concat("dotted keys are for --set; in a file write ", last_part(entry.key), " in the section ",
                entry.key.substr(0, entry.key.find('.'))));
  }
  fail(entry.key_origin, entry.key, advice(schema, "", entry.key, own));
}

void fail_unknown_option(const Schema& schema, const SectionSpec& section, const Variant* variant,
                         const Origin& name_origin, const Node& entry) {
  const std::string key = dotted(section.key, entry.key);
  if (variant != nullptr && !owners(section, entry.key).empty()) {
    std::string message = without_option(section, *variant, entry.key);
    const bool stale = name_origin.source == Origin::Source::set && entry.origin.source == Origin::Source::file;
    if (stale) message += concat("; --set ", section.key, "=", variant->name, " drops what the file says there");
    fail(entry.key_origin, key, message);
  }
  std::vector<std::string> own = keys_of(options_of(section, variant));
  if (variant != nullptr) own.insert(own.begin(), "name");
  fail(entry.key_origin, key, advice(schema, section.key, entry.key, own));
}

void fail_unknown_variant(const SectionSpec& section, const Node& name) {
  const std::vector<std::string> names = variant_names(section);
  fail(name.origin, dotted(section.key, "name"),
       concat("there is no ", section.key, " ", in_quotes(name.text), did_you_mean(name.text, names),
              "; choose one of ", join(names)));
}

}  // namespace mgt::config
