// Brings the page into each of its states, runs axe-core on them and takes screenshots: see check-page.sh.
//   node check-page.mjs ADDRESS FOLDER

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [address, folder] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const TEXT =
  'Two young men are playing with a red ball on the beach. A small dog is running through the grass.\n\n' +
  'A woman in a blue jacket sits on a bench and reads a newspaper.';

const problems = [];
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
});

/** A fresh page. Errors in its console count, except those that this script causes. */
async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 640 }, ...options });
  const page = await context.newPage();
  page.on('pageerror', (error) => problems.push(`error in the page: ${error.message}`));
  page.on('console', (message) => {
    const caused = message.text().includes('status of 500');
    if (message.type() === 'error' && !caused) problems.push(`console: ${message.text()}`);
  });
  await page.goto(address);
  await page.waitForFunction(() => document.querySelector('.model').options.length > 0);
  return page;
}

async function check(page, state) {
  await page.evaluate(`${axe};0`);
  const found = await page.evaluate((rules) => globalThis.axe.run(document, { runOnly: rules }), RULES);
  for (const { id, help, nodes } of found.violations) {
    problems.push(`${state}: ${id}: ${help}: ${nodes.map((node) => node.target.join(' ')).join(', ')}`);
  }
  console.log(`${state}: ${found.passes.length} rules hold, ${found.violations.length} are broken`);
}

const picture = (page, name) => page.screenshot({ path: join(folder, `${name}.png`) });
const marks = (page) => page.waitForSelector('.word.marked', { state: 'attached' });
const items = (page) => page.waitForSelector('#menu [role=menuitemradio]');

async function translate(page) {
  await page.fill('#text', TEXT);
  await page.waitForSelector('.output .word');
}

/** Answers requests for translations with an error, or slowly. */
const fail = (page) =>
  page.route('**/v1/translate', (route) =>
    route.fulfill({ status: 500, json: { error: 'the model failed', hint: 'see the log of the server' } }),
  );
const slow = (page) =>
  page.route('**/v1/translate', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 1500));
    await route.continue().catch(() => {}); // the page may be closed by now
  });

async function everyState(scheme) {
  const page = await open({ colorScheme: scheme });
  await check(page, `${scheme}, empty`);
  await translate(page);
  await check(page, `${scheme}, translated`);
  await page.locator('.output .word').nth(3).hover();
  await marks(page);
  await check(page, `${scheme}, attention`);
  await page.locator('.output .word').nth(3).click();
  await items(page);
  await check(page, `${scheme}, other words`);
  if (scheme === 'light') await picture(page, 'light');
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#menu[aria-label*=sentence] [role=menuitemradio]');
  await check(page, `${scheme}, other sentences`);
  await page.keyboard.press('Escape');

  if (await page.isVisible('#compare')) {
    await page.click('#compare');
    await page.waitForFunction(() => document.querySelectorAll('.output')[1]?.querySelector('.word'));
    const box = await page.locator('#mirror .word').nth(4).boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.waitForFunction(() =>
      [...document.querySelectorAll('.output')].every((output) => output.querySelector('.marked')),
    );
    await check(page, `${scheme}, two models`);
  }
  if (scheme === 'dark') await picture(page, 'dark');

  await page.click('#options summary');
  await page.check('#sampling');
  await page.fill('#glossary', 'dog = Hund\nnot a term');
  await check(page, `${scheme}, options`);
  await page.click('#options-reset');
  await page.click('#options summary');

  const lines = Array.from({ length: 100 }, (_, i) => `A dog is running for the ${i}th time.`);
  const file = { name: 'dogs.txt', mimeType: 'text/plain', buffer: Buffer.from(lines.join('\n')) };
  await slow(page);
  await page.setInputFiles('#file', file);
  await page.waitForSelector('#file-cancel:not([hidden])');
  await check(page, `${scheme}, file in progress`);
  await page.click('#file-cancel');
  await page.unroute('**/v1/translate');
  await page.click('#file-retry');
  await page.waitForFunction(() => document.getElementById('file-download').textContent === 'Download');
  await check(page, `${scheme}, file translated`);

  await fail(page);
  await page.setInputFiles('#file', file);
  await page.waitForSelector('#file-error:not([hidden])');
  await page.fill('#text', 'A dog.');
  await page.waitForSelector('#error:not([hidden])');
  await check(page, `${scheme}, errors`);
  await page.context().close();
}

async function phone(scheme) {
  const page = await open({
    colorScheme: scheme,
    viewport: { width: 390, height: 844 },
    deviceScaleFactor: 2,
    hasTouch: true,
    isMobile: true,
  });
  await translate(page);
  await page.evaluate(() => document.activeElement.blur());
  await page.locator('.output .word').nth(3).tap();
  await marks(page);
  await check(page, `phone, ${scheme}, attention`);
  if (scheme === 'light') await picture(page, 'phone');
  await page.locator('.output .word').nth(3).tap();
  await items(page);
  await check(page, `phone, ${scheme}, other words`);
  const narrow = await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
  if (!narrow) problems.push('the phone scrolls sideways');
  await page.context().close();
}

try {
  for (const scheme of ['light', 'dark']) {
    await everyState(scheme);
    await phone(scheme);
  }
} finally {
  await browser.close();
}
if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exit(1);
}
console.log('no violation in any state');
