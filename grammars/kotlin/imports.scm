(import (qualified_identifier) @module) @import
(import (qualified_identifier (identifier) @bind .) .) @import
(import (qualified_identifier) (identifier) @bind) @import
(package_header (qualified_identifier) @module) @import.package
