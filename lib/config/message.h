// How the reader words its errors: "PLACE: DOTTED.KEY: what is wrong; what to do", one short line whatever the user
// wrote. Internal to config. Pure functions.
#pragma once

#include "config/config.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace mgt::config {

bool is_control(unsigned char byte);       // C0 controls and DEL
bool is_continuation(unsigned char byte);  // not the first byte of a UTF-8 character

// The length of the longest front of `text` that is UTF-8.
std::size_t well_formed_length(std::string_view text);

// What the user wrote, fit for a message: cut between characters, without control characters or broken UTF-8.
std::string printable(std::string_view text, std::size_t limit = 60);

// The same between single quotes.
std::string in_quotes(std::string_view text);

// Throws ConfigError. An empty `key` is left out: the error is about the file as a whole.
[[noreturn]] void fail(const Origin& origin, std::string_view key, const std::string& message);

// "optimizer.lr", or "lr" where `section` is the top level ("").
std::string dotted(std::string_view section, std::string_view key);

}  // namespace mgt::config
