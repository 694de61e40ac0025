// The board's script: small parts, each of which makes something better that works without it.

import * as asks from './asks.js';
import { badge } from './badge.js';
import * as drag from './drag.js';
import * as hold from './hold.js';
import * as json from './json.js';
import * as keys from './keys.js';
import * as live from './live.js';
import * as menus from './menus.js';
import * as move from './move.js';
import * as output from './output.js';
import { onShown, release } from './page.js';
import * as pick from './pick.js';
import * as select from './select.js';
import * as submit from './submit.js';
import * as ticking from './ticking.js';

document.documentElement.classList.add('scripted');
hold.onRelease(release);
for (const part of [ticking, menus, submit, select, pick, move, drag, hold, output, keys, json, asks, live]) part.start();
ticking.synchronize();
// On a narrow screen the tabs scroll sideways: the one of this page is in view.
document.querySelector('.nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
onShown(() => {
  ticking.synchronize();
  select.count();
  keys.synchronize();
  output.follow();
  badge.draw();
});
