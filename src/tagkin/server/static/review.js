// Start all modules. Handlers look up elements when an event happens, so they survive a new page.
import * as complete from "./complete.js";
import * as doubtful from "./doubtful.js";
import * as event from "./event.js";
import * as files from "./files.js";
import * as filters from "./filters.js";
import * as grid from "./grid.js";
import * as keys from "./keys.js";
import * as lasso from "./lasso.js";
import * as map from "./map.js";
import * as overview from "./overview.js";
import { shown } from "./page.js";
import * as photograph from "./photograph.js";
import "./presence.js";
import * as search from "./search.js";
import * as selection from "./selection.js";
import * as state from "./state.js";
import * as tag from "./tag.js";
import * as tagEdit from "./tag_edit.js";
import * as write from "./write.js";
import * as zoom from "./zoom.js";

for (const part of [complete, files, filters, grid, lasso, zoom, tag, tagEdit, event, photograph, doubtful, search, selection, overview, map, write, keys]) part.listen();
state.follow();
shown();
