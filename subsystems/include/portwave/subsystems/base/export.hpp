#pragma once

/// Names visible outside the shared library, and those that a program shows to its plugins. portwave is
/// compiled with hidden names (-fvisibility=hidden); a public header opens its namespace with this word, and
/// all its declarations can be linked to:
///
///   namespace PORTWAVE_EXPORT portwave { ... }
///
/// It stands before the name, so that clang-format reads the name of the namespace. A class is shown
/// only if its first declaration is in such a namespace, also where that only announces it. Nothing
/// depends on whether the library is shared: objects for both are the same.
#define PORTWAVE_EXPORT [[gnu::visibility("default")]]
