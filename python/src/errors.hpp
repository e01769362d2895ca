#pragma once

/// Makes exceptions of the library those of portwave.errors.
void bind_errors();
