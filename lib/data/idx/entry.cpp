// Any labelled images in IDX files.
#include "data/entry.h"
#include "data/idx.h"

namespace mgt::data::idx {
namespace {

void check(const config::Config& config) {
  const config::Section& section = config.section("data");
  for (const std::string key : {"images", "labels"}) {
    if (!section.has(key)) config.error_at("data." + key, "missing; data set idx needs images and labels");
  }
  if (section.has("test_images") != section.has("test_labels")) {
    const std::string given = section.has("test_images") ? "test_images" : "test_labels";
    const std::string absent = section.has("test_images") ? "test_labels" : "test_images";
    config.error_at("data." + given, "give data." + absent + " too, or neither for no evaluation");
  }
}

Splits load(const config::Section& section, const LoadContext& context) {
  std::optional<IdxPaths> test;
  if (section.has("test_images")) test = {section.text("test_images"), section.text("test_labels")};
  return read_idx(context.files, {section.text("images"), section.text("labels")}, test, section.integer("classes"));
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "idx",
                .summary = "labelled images in IDX files, plain or gzip",
                .options = {config::text("images", {}, "training images, unsigned bytes (N, H, W) or (N, C, H, W)"),
                            config::text("labels", {}, "training labels, unsigned bytes (N)"),
                            config::text("test_images", {}, "test images; absent: no evaluation"),
                            config::text("test_labels", {}, "test labels"),
                            config::integer("classes", 10, "number of classes; labels are 0 to classes - 1",
                                            {.at_least = 1})},
                .check = check},
    .load = load};

}  // namespace mgt::data::idx
