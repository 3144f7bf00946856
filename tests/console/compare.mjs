// The comparison of two pictures, which finds faults that a reader would see, and tolerates what
// other versions of a browser and of a font draw differently.
//
// It compares cells of some pixels: how much of a cell differs from the background, and in which
// colors, and how many cells differ much.

// Returns the share of the cells with something drawn, in either picture, that differ much. 1: the
// sizes differ. The pictures are PNG or WebP; the background is the most frequent color of
// `stored`. `page`: any page of a browser, which reads the pictures.
export async function difference(page, picture, stored) {
  return page.evaluate(async ([first, second]) => {
    const kCell = 8;
    const kMuch = 0.25;
    const kDrawn = 0.05;
    const read = async (base64) => {
      const bytes = Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
      const bitmap = await createImageBitmap(new Blob([bytes]));
      const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
      context.drawImage(bitmap, 0, 0);
      const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
      return { width: bitmap.width, height: bitmap.height, data };
    };
    const mostFrequent = (data) => {
      const counts = new Map();
      let most = 0;
      for (let at = 0; at < data.length; at += 4) {
        const color = data[at] << 16 | data[at + 1] << 8 | data[at + 2];
        const count = (counts.get(color) ?? 0) + 1;
        counts.set(color, count);
        if (count > (counts.get(most) ?? 0)) most = color;
      }
      return [most >> 16, most >> 8 & 255, most & 255];
    };
    // How much each cell differs from the background, in red, green and blue.
    const cellsOf = ({ width, height, data }, background) => {
      const columns = Math.ceil(width / kCell);
      const cells = new Float64Array(3 * columns * Math.ceil(height / kCell));
      for (let y = 0; y < height; ++y) {
        for (let x = 0; x < width; ++x) {
          const at = 4 * (y * width + x);
          const cell = 3 * (Math.floor(y / kCell) * columns + Math.floor(x / kCell));
          for (let i = 0; i < 3; ++i)
            cells[cell + i] += Math.abs(data[at + i] - background[i]) / 255 / kCell / kCell;
        }
      }
      return cells;
    };
    const [a, b] = [await read(first), await read(second)];
    if (a.width !== b.width || a.height !== b.height) return 1;
    const background = mostFrequent(b.data);
    const [left, right] = [cellsOf(a, background), cellsOf(b, background)];
    let [drawn, different] = [0, 0];
    for (let i = 0; i < left.length; i += 3) {
      let [most, apart] = [0, 0];
      for (let j = i; j < i + 3; ++j) {
        most = Math.max(most, left[j], right[j]);
        apart = Math.max(apart, Math.abs(left[j] - right[j]));
      }
      if (most < kDrawn) continue;
      drawn += 1;
      if (apart > kMuch * most + kDrawn) different += 1;
    }
    return different / drawn;
  }, [picture.toString("base64"), stored.toString("base64")]);
}
