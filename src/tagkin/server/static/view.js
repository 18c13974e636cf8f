// A view that is moved and zoomed with the mouse, the wheel, fingers and keys: of photographs that are
// looked at closer, and of the map.

const STILL = 5; // pixels: a shorter movement is a click

export class View {
  scale = 1; // 1 shows everything
  x = 0; // how far the content is moved, in widths and heights of its frame
  y = 0;

  // `draw` shows the content of a `box` at this scale and place.
  constructor(box, most, draw) {
    Object.assign(this, { box, most, draw });
  }

  show() {
    const limit = (this.scale - 1) / 2; // the content never leaves its frame
    this.x = Math.max(-limit, Math.min(limit, this.x));
    this.y = Math.max(-limit, Math.min(limit, this.y));
    this.box.classList.toggle("zoomed", this.scale > 1);
    this.draw();
  }

  fit() {
    Object.assign(this, { scale: 1, x: 0, y: 0 });
    this.show();
  }

  // Zoom at a point of the frame, from -0.5 to 0.5; that point stays where it is.
  zoom(factor, [atX, atY] = [0, 0]) {
    const scale = Math.max(1, Math.min(this.most, this.scale * factor));
    const ratio = scale / this.scale;
    this.x = atX - (atX - this.x) * ratio;
    this.y = atY - (atY - this.y) * ratio;
    this.scale = scale;
    this.show();
  }

  move(byX, byY) {
    this.x += byX;
    this.y += byY;
    this.show();
  }
}

function middle(events) {
  const sum = events.reduce((all, one) => [all[0] + one.clientX, all[1] + one.clientY], [0, 0]);
  return { clientX: sum[0] / events.length, clientY: sum[1] / events.length };
}

const spread = ([a, b]) => (b ? Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) : 1);

// The end of a drag is no click.
export function skipClick() {
  const skip = (click) => click.stopPropagation();
  addEventListener("click", skip, { capture: true, once: true });
  setTimeout(() => removeEventListener("click", skip, { capture: true }), 0);
}

// Let pointers and the wheel on `stage` change a view. `frameOf` returns the frame of an event, `isMeant`
// whether a pointer or the wheel is for the view, and `swiped` gets how far one pointer went in all.
export function listen(stage, view, { frameOf, isMeant = () => true, swiped = () => {} }) {
  const pointers = new Map(); // id → last event
  let start = null; // where one pointer began
  let isDrag = false;

  const pointIn = (event, { clientX, clientY } = event) => {
    const box = frameOf(event).getBoundingClientRect();
    return [(clientX - box.left) / box.width - 0.5, (clientY - box.top) / box.height - 0.5];
  };

  stage.addEventListener("pointerdown", (event) => {
    if (event.button || !isMeant(event)) return;
    start = pointers.size ? null : event;
    isDrag = false;
    pointers.set(event.pointerId, event);
  });
  addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) return;
    isDrag ||= !start || Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY) > STILL;
    const before = [...pointers.values()];
    pointers.set(event.pointerId, event);
    if (!isDrag) return;
    const after = [...pointers.values()];
    const [from, to] = [middle(before), middle(after)];
    const { width, height } = frameOf(event).getBoundingClientRect();
    view.move((to.clientX - from.clientX) / width, (to.clientY - from.clientY) / height);
    if (after.length > 1) view.zoom(spread(after) / spread(before), pointIn(event, to));
  });
  const ended = (event) => {
    if (!pointers.delete(event.pointerId) || pointers.size) return;
    if (isDrag) skipClick();
    if (start && event.type === "pointerup") swiped(event.clientX - start.clientX);
  };
  for (const kind of ["pointerup", "pointercancel"]) addEventListener(kind, ended);
  stage.addEventListener("wheel", (event) => {
    if (!isMeant(event)) return;
    event.preventDefault();
    view.zoom(Math.exp(-event.deltaY / 300), pointIn(event));
  }, { passive: false });
  stage.addEventListener("dblclick", (event) => {
    if (!isMeant(event)) return;
    if (view.scale > 1) view.fit();
    else view.zoom(3, pointIn(event));
  });
}
