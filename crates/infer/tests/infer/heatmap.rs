use attend_infer::heatmap::{Axes, Panel, Picture};
use roxmltree::{Document, Node};

/// All elements of this class.
pub(crate) fn of_class<'a>(document: &'a Document, class: &str) -> Vec<Node<'a, 'a>> {
    let nodes = document.descendants();
    let named = nodes.filter(|node| node.attribute("class") == Some(class));
    named.collect()
}

pub(crate) fn elements(nodes: &[Node], name: &str) -> usize {
    let all = nodes.iter().flat_map(Node::descendants);
    all.filter(|node| node.has_tag_name(name)).count()
}

/// A panel of equal weights.
fn uniform(rows: usize, columns: usize) -> Panel {
    let weight = 1.0 / columns as f32;
    Panel::new("layer 1, head 1", vec![vec![weight; columns]; rows])
}

/// A single heatmap and a grid, with these labels as rows and columns.
fn pictures(labels: &[&str]) -> [Picture; 2] {
    let axes = Axes::new(labels, labels);
    let panel = uniform(labels.len(), labels.len());
    let row = vec![panel.clone(); 3];
    [
        Picture::single(axes.clone(), panel),
        Picture::grid(axes, vec![row.clone(), row]),
    ]
}

#[test]
fn labels_are_escaped_and_control_characters_removed() {
    let svg = pictures(&["<unk>", "a & \"b\"", "c\u{0}\u{1b}d"])[0].to_svg();
    assert!(svg.contains(">&lt;unk&gt;</text>"), "{svg}");
    let document = Document::parse(&svg).unwrap();
    let rows = of_class(&document, "rows");
    let texts = rows[0].children().filter(Node::is_element);
    let texts: Vec<&str> = texts.filter_map(|node| node.text()).collect();
    assert_eq!(texts, ["<unk>", "a & \"b\"", "cd"]);
}

/// Labels in all scripts, and those of long sentences, are within the bounds of the picture. Without
/// fonts on the system, text has no bounding box and only shapes are checked.
#[test]
#[cfg(feature = "png")]
fn every_label_is_within_the_bounds_of_the_picture() {
    use resvg::usvg::{Options, Tree};

    let long = vec!["Wassermelone"; 100];
    let hebrew = ["שלום", "עולם.", "-ים", "</s>"];
    let arabic = ["مرحبا", "بالعالم", "السلام", "</s>"];
    let chinese = ["我们", "看见", "一只", "小猫", "。", "</s>"];
    let one = ["MWMWMWMWMWMWMWMWMW"];
    let mut options = Options::default();
    options.fontdb_mut().load_system_fonts();
    for labels in [&long[..], &hebrew, &arabic, &chinese, &one] {
        for picture in pictures(labels) {
            let tree = Tree::from_str(&picture.to_svg(), &options).unwrap();
            let bounds = tree.root().abs_bounding_box();
            let (w, h) = (tree.size().width(), tree.size().height());
            assert!(bounds.left() >= 0.0 && bounds.top() >= 0.0, "{labels:?}");
            assert!(
                bounds.right() <= w && bounds.bottom() <= h,
                "{labels:?}: {bounds:?} in {w} × {h}"
            );
        }
    }
}

#[test]
fn labels_of_long_sentences_do_not_overlap() {
    let [single, grid] = pictures(&vec!["word"; 100]);
    for picture in [single, grid] {
        let svg = picture.to_svg();
        let document = Document::parse(&svg).unwrap();
        let rows = of_class(&document, "rows")[0];
        let font: f32 = rows.attribute("font-size").unwrap().parse().unwrap();
        let texts = rows.children().filter(|node| node.has_tag_name("text"));
        let heights: Vec<f32> = texts
            .map(|node| node.attribute("y").unwrap().parse().unwrap())
            .collect();
        let apart = |pair: &[f32]| pair[1] - pair[0] >= font;
        assert!(heights.windows(2).all(apart), "{font}: {heights:?}");
    }
}

#[test]
fn right_to_left_labels_have_the_unicode_bidi_attribute() {
    let svg = pictures(&["שלום."])[0].to_svg();
    assert!(svg.contains("unicode-bidi=\"plaintext\""), "{svg}");
    assert!(!pictures(&["dog."])[0].to_svg().contains("unicode-bidi"));
}
