"""Small repositories in every language, with their expected edges.

The edges were listed by hand from the source. An edge is ``source -> target``. A file is named by its path and a
symbol follows ``#``. Each repository contains similar names that must not be linked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sample:
    """A repository's files by path, and its edges by kind."""

    files: Mapping[str, str]
    calls: str
    imports: str
    inherits: str

    def write(self, root: Path) -> Path:
        for path, text in self.files.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return root

    def edges(self, rel: str) -> set[str]:
        return {
            " ".join(line.split())
            for line in getattr(self, rel).strip().splitlines()
            if line.strip()
        }


PYTHON = Sample(
    {
        "src/shop/__init__.py": "from .orders import Order, place as place_order\n",
        "src/shop/orders.py": '''\
"""Orders. Calls nothing: refund(order) in a text is no call."""
import json
import os.path

from shop import stock
from shop.money import Money, rounded
from shop.stock import reserve


class Order:
    def __init__(self, total: Money) -> None:
        self.total = total
        self.log = AuditLog()

    def pay(self) -> None:
        self.check()
        self.log.append_entry("paid")
        self.total.convert("EUR")

    def check(self) -> None:
        rounded(1)
        json.dumps({})
        os.path.join("a", "b")


class GiftOrder(Order):
    def check(self) -> None:
        super().check()

    def wrap(self) -> None:
        self.pay()


class AuditLog:
    def append_entry(self, text):
        print(text)


def place(order: Order) -> None:
    def confirm() -> None:
        order.pay()

    reserve(order)
    stock.release(order)
    confirm()
    order.total.get("x")


def refund(order):
    gift = GiftOrder(Money())
    gift.wrap()
    order.unwrap_all()
''',
        "src/shop/money.py": """\
class Money:
    def convert(self, to):
        return rounded(to)

    def get(self, key):
        return key


def rounded(value):
    return round(value)
""",
        "src/shop/stock.py": """\
def reserve(order):
    print(order)
    open("x")


def release(order):
    return helper(order)


def open_stock():
    return {}.get("x")


def helper(order):
    return len(order)
""",
        "src/shop/cli.py": """\
import shop
import shop.stock as warehouse
from shop import Order, place_order


@command
def main():
    place_order(Order(None))
    warehouse.reserve(None)
    shop.orders.refund(None)


if __name__ == "__main__":
    main()
""",
        "tests/test_orders.py": """\
from shop.orders import GiftOrder, helper


def helper_of_test():
    return GiftOrder(None)


def test_gift():
    helper_of_test().wrap()
""",
        "tools/helper.py": "def helper(order):\n    return order\n",
    },
    calls="""
        src/shop/orders.py#Order.__init__ -> src/shop/orders.py#AuditLog
        src/shop/orders.py#Order.pay -> src/shop/orders.py#Order.check
        src/shop/orders.py#Order.pay -> src/shop/orders.py#AuditLog.append_entry
        src/shop/orders.py#Order.pay -> src/shop/money.py#Money.convert
        src/shop/orders.py#Order.check -> src/shop/money.py#rounded
        src/shop/orders.py#GiftOrder.check -> src/shop/orders.py#Order.check
        src/shop/orders.py#GiftOrder.wrap -> src/shop/orders.py#Order.pay
        src/shop/orders.py#place.confirm -> src/shop/orders.py#Order.pay
        src/shop/orders.py#place -> src/shop/stock.py#reserve
        src/shop/orders.py#place -> src/shop/stock.py#release
        src/shop/orders.py#place -> src/shop/orders.py#place.confirm
        src/shop/orders.py#place -> src/shop/money.py#Money.get
        src/shop/orders.py#refund -> src/shop/orders.py#GiftOrder
        src/shop/orders.py#refund -> src/shop/money.py#Money
        src/shop/orders.py#refund -> src/shop/orders.py#GiftOrder.wrap
        src/shop/money.py#Money.convert -> src/shop/money.py#rounded
        src/shop/stock.py#release -> src/shop/stock.py#helper
        src/shop/cli.py#main -> src/shop/orders.py#place
        src/shop/cli.py#main -> src/shop/orders.py#Order
        src/shop/cli.py#main -> src/shop/stock.py#reserve
        src/shop/cli.py#main -> src/shop/orders.py#refund
        src/shop/cli.py -> src/shop/cli.py#main
        tests/test_orders.py#helper_of_test -> src/shop/orders.py#GiftOrder
        tests/test_orders.py#test_gift -> tests/test_orders.py#helper_of_test
        tests/test_orders.py#test_gift -> src/shop/orders.py#GiftOrder.wrap
    """,
    imports="""
        src/shop/__init__.py -> src/shop/orders.py
        src/shop/orders.py -> src/shop/stock.py
        src/shop/orders.py -> src/shop/money.py
        src/shop/orders.py -> src/shop/__init__.py
        src/shop/cli.py -> src/shop/__init__.py
        src/shop/cli.py -> src/shop/stock.py
        tests/test_orders.py -> src/shop/orders.py
    """,
    inherits="""
        src/shop/orders.py#GiftOrder -> src/shop/orders.py#Order
    """,
)

TYPESCRIPT = Sample(
    {
        "src/cart.ts": """\
import { Item, priceOf } from "./item";
import * as tax from "./tax.js";
import format, { pad as padded } from "./format";
import { readFile } from "fs";

export interface Priced extends Named {
  total(): number;
}
interface Named { name: string }

export class Cart extends Basket implements Priced {
  private items: Item[] = [];
  private logger: Logger = new Logger();
  total(): number {
    this.items.map((one) => priceOf(one));
    return tax.add(this.subtotal());
  }
  print(): string {
    this.logger.write("priceOf(x)");
    this.empty();
    readFile("x", () => null);
    return format(padded(String(this.total())));
  }
  private subtotal(): number { return 0; }
}

class Basket {
  empty(): void { this.clearAll(); }
}

export const checkout = async (cart: Cart) => {
  const local = () => cart.print();
  return local();
};
""",
        "src/item.ts": """\
export type Item = { price: number };
export function priceOf(item: Item): number { return item.price; }
export class Logger { write(text: string): void { console.log(text); } }
""",
        "src/tax.ts": """\
export function add(value: number) { return round(value); }
function round(v: number) { return v; }
""",
        "src/format/index.ts": """\
export default function format(text: string) { return pad(text); }
export function pad(text: string) { return text; }
""",
        "src/view.tsx": """\
import { Cart, checkout } from "./shop";
export function View({ cart }: { cart: Cart }) {
  return <Button onClick={() => checkout(cart)}>pay</Button>;
}
function Button(props: object) { return <b />; }
""",
        "src/shop.ts": 'export * from "./cart";\nexport { add as addTax } from "./tax";\n',
        "lib/legacy.js": """\
const { add } = require("./sum");
const sum = require("./sum");
exports.run = function () { return add(1) + sum.twice(2); };
function Old() { this.start(); }
Old.prototype.start = function () { round(1); };
""",
        "lib/sum.js": """\
function add(n) { return n; }
function twice(n) { return add(n); }
module.exports = { add, twice };
""",
    },
    calls="""
        src/cart.ts#Cart.total -> src/item.ts#priceOf
        src/cart.ts#Cart.total -> src/tax.ts#add
        src/cart.ts#Cart.total -> src/cart.ts#Cart.subtotal
        src/cart.ts#Cart.print -> src/cart.ts#Basket.empty
        src/cart.ts#Cart.print -> src/format/index.ts#format
        src/cart.ts#Cart.print -> src/format/index.ts#pad
        src/cart.ts#Cart.print -> src/cart.ts#Cart.total
        src/cart.ts#checkout.local -> src/cart.ts#Cart.print
        src/cart.ts#checkout -> src/cart.ts#checkout.local
        src/tax.ts#add -> src/tax.ts#round
        src/format/index.ts#format -> src/format/index.ts#pad
        src/view.tsx#View -> src/cart.ts#checkout
        src/view.tsx#View -> src/view.tsx#Button
        lib/legacy.js#run -> lib/sum.js#add
        lib/legacy.js#run -> lib/sum.js#twice
        lib/sum.js#twice -> lib/sum.js#add
    """,
    imports="""
        src/cart.ts -> src/item.ts
        src/cart.ts -> src/tax.ts
        src/cart.ts -> src/format/index.ts
        src/view.tsx -> src/shop.ts
        src/shop.ts -> src/cart.ts
        src/shop.ts -> src/tax.ts
        lib/legacy.js -> lib/sum.js
    """,
    inherits="""
        src/cart.ts#Priced -> src/cart.ts#Named
        src/cart.ts#Cart -> src/cart.ts#Basket
        src/cart.ts#Cart -> src/cart.ts#Priced
    """,
)

ALIASES = Sample(
    {
        "tsconfig.base.json": """\
{
  // what all packages share
  "compilerOptions": {
    "baseUrl": ".",
    "paths": {
      "@shop/*": ["packages/*/src", "packages/*"],
      "@shop/kit/round": ["packages/kit/exact"],
    },
  },
}
""",
        "tsconfig.json": '{ "extends": "./tsconfig.base" }',
        "web/tsconfig.json": '{"references": [{ "path": "./tsconfig.node.json" }, { "path": "./tsconfig.app.json" }]}',
        "web/tsconfig.node.json": '{ "extends": "@tsconfig/node20/tsconfig.json" }',
        "web/tsconfig.app.json": '{ "compilerOptions": { "paths": { "@/*": ["./src/*"], "react": ["./lost"] } } }',
        "old/jsconfig.json": '{ "compilerOptions": { "baseUrl": "lib" } }',
        "broken/tsconfig.json": '{ "compilerOptions": ',
        "packages/kit/src/index.ts": """\
import { round } from "@shop/kit/round";
export function kit() { return round(1); }
""",
        "packages/kit/exact.ts": "export function round(n: number) { return n; }\n",
        "packages/till.ts": 'import { kit } from "@shop/kit";\nexport const open = () => kit();\n',
        "web/src/app.tsx": """\
import { till } from "@/model/till";
import { kit } from "@shop/kit";
import React from "react";
export function App() { return till(kit()); }
""",
        "web/src/model/till.ts": "export function till(one: unknown) { return one; }\n",
        "old/main.js": """\
import { sum } from "math/sum";
import lodash from "lodash";
export function main() { return sum(lodash); }
""",
        "old/lib/math/sum.js": "export function sum(n) { return n; }\n",
        "broken/main.ts": 'import { till } from "@/model/till";\nexport function main() { return till(1); }\n',
    },
    calls="""
        packages/kit/src/index.ts#kit -> packages/kit/exact.ts#round
        packages/till.ts#open -> packages/kit/src/index.ts#kit
        web/src/app.tsx#App -> web/src/model/till.ts#till
        old/main.js#main -> old/lib/math/sum.js#sum
    """,
    imports="""
        packages/kit/src/index.ts -> packages/kit/exact.ts
        packages/till.ts -> packages/kit/src/index.ts
        web/src/app.tsx -> web/src/model/till.ts
        old/main.js -> old/lib/math/sum.js
    """,
    inherits="",
)

GO_AND_RUST = Sample(
    {
        "go.mod": "module example.org/ship\n\ngo 1.22\n",
        "main.go": """\
package main

import (
	"fmt"
	"example.org/ship/engine"
	nav "example.org/ship/internal/navigation"
)

func main() {
	e := engine.New()
	e.Start()
	nav.Plot(nil)
	fmt.Println("engine.New()")
	boot()
}
""",
        "boot.go": "package main\n\nfunc boot() { helper() }\n\nfunc helper() {}\n",
        "engine/engine.go": """\
package engine

type Base struct{ id int }

type Engine struct {
	Base
	pump *Pump
}

type Runner interface {
	Start()
}

func New() *Engine { return &Engine{pump: newPump()} }

func (e *Engine) Start() {
	e.pump.Prime()
	e.check()
	len("x")
}

func (e *Engine) check() {}
""",
        "engine/pump.go": """\
package engine

type Pump struct{}

func newPump() *Pump { return &Pump{} }

func (p *Pump) Prime() { helper() }

func helper() {}
""",
        "internal/navigation/plot.go": "package navigation\n\nfunc Plot(x any) { steer(x) }\n\nfunc steer(x any) {}\n",
        "crates/hull/Cargo.toml": '[package]\nname = "hull-core"\nversion = "0.1.0"\n',
        "crates/hull/src/lib.rs": """\
mod plate;
pub mod weld;

use crate::plate::{Plate, Shape as Form};
use std::collections::HashMap;

pub fn build() -> Plate {
    let plate = Plate::new(1);
    plate.bend();
    weld::join(&plate);
    let map: HashMap<u8, u8> = HashMap::new();
    inner();
    println!("weld::join()");
    plate
}

fn inner() {}
""",
        "crates/hull/src/plate.rs": """\
use super::weld::join;

pub trait Shape { fn area(&self) -> u32; }

pub trait Solid: Shape {}

pub struct Plate { size: u32 }

impl Plate {
    pub fn new(size: u32) -> Self { Self::check(size); Plate { size } }
    fn check(size: u32) {}
    pub fn bend(&self) { self.area(); join(self); }
}

impl Shape for Plate {
    fn area(&self) -> u32 { self.size.pow(2) }
}
""",
        "crates/hull/src/weld.rs": """\
use crate::plate::Plate;

pub fn join(plate: &Plate) { heat(); plate.bend() }

fn heat() {}
""",
        "crates/dock/Cargo.toml": '[package]\nname = "dock"\n',
        "crates/dock/src/main.rs": "use hull_core::build;\n\nfn main() { build(); hull_core::weld::join(&build()); }\n",
    },
    calls="""
        main.go#main -> engine/engine.go#New
        main.go#main -> engine/engine.go#Engine.Start
        main.go#main -> internal/navigation/plot.go#Plot
        main.go#main -> boot.go#boot
        boot.go#boot -> boot.go#helper
        engine/engine.go#New -> engine/pump.go#newPump
        engine/engine.go#Engine.Start -> engine/pump.go#Pump.Prime
        engine/engine.go#Engine.Start -> engine/engine.go#Engine.check
        engine/pump.go#Pump.Prime -> engine/pump.go#helper
        internal/navigation/plot.go#Plot -> internal/navigation/plot.go#steer
        crates/hull/src/lib.rs#build -> crates/hull/src/plate.rs#Plate.new
        crates/hull/src/lib.rs#build -> crates/hull/src/plate.rs#Plate.bend
        crates/hull/src/lib.rs#build -> crates/hull/src/weld.rs#join
        crates/hull/src/lib.rs#build -> crates/hull/src/lib.rs#inner
        crates/hull/src/plate.rs#Plate.new -> crates/hull/src/plate.rs#Plate.check
        crates/hull/src/plate.rs#Plate.bend -> crates/hull/src/plate.rs#Plate.area
        crates/hull/src/plate.rs#Plate.bend -> crates/hull/src/weld.rs#join
        crates/hull/src/weld.rs#join -> crates/hull/src/weld.rs#heat
        crates/hull/src/weld.rs#join -> crates/hull/src/plate.rs#Plate.bend
        crates/dock/src/main.rs#main -> crates/hull/src/lib.rs#build
        crates/dock/src/main.rs#main -> crates/hull/src/weld.rs#join
    """,
    imports="""
        main.go -> engine/engine.go
        main.go -> engine/pump.go
        main.go -> internal/navigation/plot.go
        crates/hull/src/lib.rs -> crates/hull/src/plate.rs
        crates/hull/src/lib.rs -> crates/hull/src/weld.rs
        crates/hull/src/plate.rs -> crates/hull/src/weld.rs
        crates/hull/src/weld.rs -> crates/hull/src/plate.rs
        crates/dock/src/main.rs -> crates/hull/src/lib.rs
    """,
    inherits="""
        engine/engine.go#Engine -> engine/engine.go#Base
        crates/hull/src/plate.rs#Plate -> crates/hull/src/plate.rs#Shape
        crates/hull/src/plate.rs#Solid -> crates/hull/src/plate.rs#Shape
    """,
)

JAVA_AND_C = Sample(
    {
        "src/main/java/org/example/app/App.java": """\
package org.example.app;

import org.example.model.Account;
import org.example.model.Ledger;
import static org.example.util.Text.trim;
import org.example.util.*;
import java.util.List;

public class App extends Base implements Runnable {
    private final Ledger ledger = new Ledger();

    public static void main(String[] args) {
        App app = new App();
        app.run();
        Text.upper("Ledger.post()");
    }

    public void run() {
        Account account = ledger.open(trim("x"));
        account.close();
        prepare();
        List.of(1).size();
        new Inner().go();
    }

    static class Inner {
        void go() { System.out.println(); }
    }
}
""",
        "src/main/java/org/example/app/Base.java": """\
package org.example.app;

abstract class Base {
    protected void prepare() { this.load(); }
    private void load() {}
}
""",
        "src/main/java/org/example/model/Account.java": """\
package org.example.model;

public class Account implements Closing {
    public void close() {}
    public void open() {}
}

interface Closing extends AutoCloseable { void close(); }
""",
        "src/main/java/org/example/model/Ledger.java": """\
package org.example.model;

public class Ledger {
    public Account open(String name) { return new Account(); }
}
""",
        "src/main/java/org/example/util/Text.java": """\
package org.example.util;

public final class Text {
    public static String trim(String s) { return s.trim(); }
    public static String upper(String s) { return trim(s); }
}
""",
        "native/ring.h": """\
#pragma once
struct ring { int at; };
void ring_push(struct ring *r, int v);
int ring_size(struct ring *r);
""",
        "native/ring.c": """\
#include "ring.h"
#include <stdio.h>

static int wrap(int v) { return v; }

void ring_push(struct ring *r, int v) { r->at = wrap(v); printf("ring_size(r)"); }

int ring_size(struct ring *r) { return r->at; }
""",
        "native/main.c": """\
#include "ring.h"

static int wrap(int v) { return v + 1; }

int main(void) {
    struct ring r;
    ring_push(&r, wrap(1));
    return ring_size(&r);
}
""",
        "native/shape.hpp": """\
#pragma once
namespace geo {
class Shape {
public:
    virtual double area() const = 0;
    void draw() { paint(); }
    void paint();
};
class Square : public Shape {
public:
    double area() const override;
    double side = 1;
};
}
""",
        "native/shape.cpp": """\
#include "shape.hpp"
namespace geo {
void Shape::paint() { area(); }
double Square::area() const { return scaled(side); }
static double scaled(double s) { return s; }
double total(Square *square) { square->draw(); Square other; return other.area(); }
}
""",
    },
    calls="""
        src/main/java/org/example/app/App.java#App -> src/main/java/org/example/model/Ledger.java#Ledger
        src/main/java/org/example/app/App.java#App.main -> src/main/java/org/example/app/App.java#App
        src/main/java/org/example/app/App.java#App.main -> src/main/java/org/example/app/App.java#App.run
        src/main/java/org/example/app/App.java#App.main -> src/main/java/org/example/util/Text.java#Text.upper
        src/main/java/org/example/app/App.java#App.run -> src/main/java/org/example/model/Ledger.java#Ledger.open
        src/main/java/org/example/app/App.java#App.run -> src/main/java/org/example/util/Text.java#Text.trim
        src/main/java/org/example/app/App.java#App.run -> src/main/java/org/example/model/Account.java#Account.close
        src/main/java/org/example/app/App.java#App.run -> src/main/java/org/example/app/Base.java#Base.prepare
        src/main/java/org/example/app/App.java#App.run -> src/main/java/org/example/app/App.java#App.Inner
        src/main/java/org/example/app/App.java#App.run -> src/main/java/org/example/app/App.java#App.Inner.go
        src/main/java/org/example/app/Base.java#Base.prepare -> src/main/java/org/example/app/Base.java#Base.load
        src/main/java/org/example/model/Ledger.java#Ledger.open -> src/main/java/org/example/model/Account.java#Account
        src/main/java/org/example/util/Text.java#Text.upper -> src/main/java/org/example/util/Text.java#Text.trim
        native/ring.c#ring_push -> native/ring.c#wrap
        native/main.c#main -> native/main.c#wrap
        native/main.c#main -> native/ring.c#ring_push
        native/main.c#main -> native/ring.c#ring_size
        native/shape.hpp#geo.Shape.draw -> native/shape.cpp#geo.Shape.paint
        native/shape.cpp#geo.Square.area -> native/shape.cpp#geo.scaled
        native/shape.cpp#geo.total -> native/shape.hpp#geo.Shape.draw
        native/shape.cpp#geo.total -> native/shape.cpp#geo.Square.area
    """,
    imports="""
        src/main/java/org/example/app/App.java -> src/main/java/org/example/model/Account.java
        src/main/java/org/example/app/App.java -> src/main/java/org/example/model/Ledger.java
        src/main/java/org/example/app/App.java -> src/main/java/org/example/util/Text.java
        native/ring.c -> native/ring.h
        native/main.c -> native/ring.h
        native/shape.cpp -> native/shape.hpp
    """,
    inherits="""
        src/main/java/org/example/app/App.java#App -> src/main/java/org/example/app/Base.java#Base
        src/main/java/org/example/model/Account.java#Account -> src/main/java/org/example/model/Account.java#Closing
        native/shape.hpp#geo.Square -> native/shape.hpp#geo.Shape
    """,
)

SAMPLES = {
    "python": PYTHON,
    "typescript": TYPESCRIPT,
    "aliases": ALIASES,
    "go and rust": GO_AND_RUST,
    "java and c": JAVA_AND_C,
}
