// What is checked of a config's text before the YAML parser sees it: encoding, control characters, tabs.
// Internal to config. Pure functions.
#pragma once

#include "config/config.h"

#include <string_view>

namespace mgt::config {

bool is_utf8(std::string_view text);
bool is_control(unsigned char byte);       // C0 controls and DEL
bool is_continuation(unsigned char byte);  // not the first byte of a UTF-8 character

// `base` with the place inside its file; a value of --set has no lines.
Origin origin_at(const Origin& base, int line, int column);

// ConfigError when the text is no UTF-8, holds a control character, or a line is indented with a tab.
void check_text(std::string_view text, const Origin& base);

}  // namespace mgt::config
