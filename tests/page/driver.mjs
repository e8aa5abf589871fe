// One browser, told by lines of JSON on standard input what to do; each is
// answered by one line. What is checked stands in tests/it/page.rs.
//
//   node driver.mjs MODULES CHROMIUM ORIGIN

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { join } from 'node:path';

const [modules, executablePath, origin] = process.argv.slice(2);
const { chromium } = createRequire(join(modules, 'x.js'))('playwright-core');

/** A condition that does not come true is a bug; nothing takes so long. */
const DEADLINE = 60_000;

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

// A fresh profile: Playwright makes one in the temporary directory and removes it.
const browser = await chromium.launch({ executablePath, args: FLAGS, headless: true });
const problems = [];
let page;

const inPage = {
  /** What is focused, as a person would name it. */
  active: () => {
    const { tagName, textContent, id } = document.activeElement;
    return { tag: tagName, text: textContent.trim(), href: document.activeElement.getAttribute('href'), id };
  },

  /** Texts whose contrast is below 4.5, or below 3 where they are large (WCAG 2, AA). */
  contrast: () => {
    const parse = (color) => {
      const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number);
      return { r, g, b, a };
    };
    const light = ({ r, g, b }) => {
      const [x, y, z] = [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
      return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const behind = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const color = parse(getComputedStyle(at).backgroundColor);
        if (color.a === 1) return color;
      }
      return parse(getComputedStyle(document.documentElement).backgroundColor);
    };
    const weak = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
      const style = getComputedStyle(element);
      const drawn = element.namespaceURI.endsWith('svg') ? style.fill : style.color;
      const [a, b] = [light(parse(drawn)), light(behind(element))];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      if (ratio < (large ? 3 : 4.5)) weak.push(`${walker.currentNode.data.trim()}: ${ratio.toFixed(2)}`);
    }
    return weak;
  },
};

const COMMANDS = {
  /** A window of its own. */
  async window({ scheme = 'light', width = 1200, height = 900, credentials, motion = 'reduce' }) {
    await page?.context().close();
    const context = await browser.newContext({
      colorScheme: scheme,
      viewport: { width, height },
      httpCredentials: credentials,
      reducedMotion: motion,
    });
    await context.addInitScript(() => {
      addEventListener('securitypolicyviolation', (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
    });
    context.on('request', (request) => {
      if (new URL(request.url()).origin !== origin) problems.push(`asked for ${request.url()}`);
    });
    page = await context.newPage();
    page.setDefaultTimeout(DEADLINE);
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) problems.push(`${message.type()}: ${message.text()}`);
    });
    page.on('pageerror', (error) => problems.push(`threw ${error.stack}`));
    page.on('dialog', (dialog) => {
      problems.push(`a dialog: ${dialog.message()}`);
      return dialog.dismiss();
    });
  },
  async open({ path }) {
    await page.goto(origin + path);
    await COMMANDS.settled();
  },
  async reload() {
    await page.reload();
    await COMMANDS.settled();
  },
  /** Waits until everything asked for is shown and the stream stands. */
  async settled() {
    await page.waitForSelector('main[aria-busy="false"] h1');
    await page.waitForSelector('#live[data-state="live"]');
  },
  waits: ({ selector, text }) =>
    page.waitForFunction(([s, t]) => [...document.querySelectorAll(s)].some((e) => e.textContent.includes(t)), [selector, text]).then(() => null),
  texts: ({ selector }) => page.locator(selector).evaluateAll((all) => all.map((one) => one.textContent.trim())),
  count: ({ selector }) => page.locator(selector).count(),
  attribute: ({ selector, name }) => page.locator(selector).first().getAttribute(name),
  value: ({ selector }) => page.locator(selector).first().inputValue(),
  click: ({ selector }) => page.locator(selector).first().click(),
  focus: ({ selector }) => page.locator(selector).first().focus(),
  press: ({ key }) => page.keyboard.press(key),
  type: ({ text }) => page.keyboard.type(text),
  location: () => page.evaluate(() => location.hash),
  active: () => page.evaluate(inPage.active),
  contrast: () => page.evaluate(inPage.contrast),
  /** How far the document is wider than the window, in pixels. */
  overflow: () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth),
  shot: ({ file, whole = true }) => page.screenshot({ path: file, fullPage: whole }).then(() => null),
  /** The whole accessibility tree: role, name and level of what is not ignored. */
  async tree() {
    const session = await page.context().newCDPSession(page);
    const { nodes } = await session.send('Accessibility.getFullAXTree');
    await session.detach();
    const level = (node) => node.properties?.find(({ name }) => name === 'level')?.value.value ?? null;
    return nodes
      .filter((node) => !node.ignored)
      .map((node) => ({ role: node.role?.value ?? '', name: node.name?.value ?? '', level: level(node) }));
  },
  problems: () => problems,
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, ...rest } = JSON.parse(line);
  let answer;
  try {
    answer = { ok: (await COMMANDS[name](rest)) ?? null };
  } catch (error) {
    const seen = await page?.locator('body').innerText().catch(() => '');
    answer = { failed: `${error.message}\n${problems.join('\n')}\n${seen}` };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
